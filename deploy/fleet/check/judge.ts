/**
 * The check at the end of a run: waits until accepted events have arrived everywhere, then compares
 * everything. It reads differences again until the settling time is over, so a late row is not
 * reported as lost. What still differs then is a mismatch.
 */
import type { Policy } from '#shared/core/policies/policy.ts'
import type { Plan } from '../phones/plan.ts'
import type { Received } from '../send/deliveries.ts'
import type { Get } from '../send/http-calls.ts'
import { addMismatch, type Mismatch, type SentEvents } from '../send/sent-events.ts'
import { type AlertModel, checkAlerts, countRequired, toAlertModel } from './check-alerts.ts'
import { checkWebhooks } from './check-webhooks.ts'
import { checkDevice, type DeviceModel, toDeviceModels } from './device-model.ts'
import {
  ApiAnswerError,
  countAlerts,
  type ListedAlert,
  readAlerts,
  readHistory,
} from './read-back.ts'

export type Judging = {
  tenantId: string
  /** Whether the tenant has no other data. */
  ownTenant: boolean
  policy: Policy
  plan: Plan
  sentEvents: SentEvents
  get: Get
  /** Null when the fleet receives no webhooks. */
  received: Received | null
  /** Lists deliveries of the tenant in one state, at most a page of them; for a receiver only. */
  listDeliveries: (state: DeliveryState) => Promise<unknown[]>
  startedAtMs: number
  /** The maximum difference between the service's clock and ours. */
  clockToleranceMs: number
  /** Monotonic ms from the start of the run. */
  sinceStartMs: () => number
  settleMs: number
  pause: (ms: number) => Promise<void>
  onProgress: (text: string) => void
}

type DeliveryState = 'pending' | 'sending' | 'failed' | 'skipped'

export type Judgement = {
  devices: number
  sessions: number
  alerts: ListedAlert[]
  requiredAlerts: number
  model: AlertModel
}

/** Concurrent requests to the API: few, because the service shares the machine. */
const readsAtOnce = 8

/** How long the number of alerts must stay the same before the list counts as complete. */
const quietMs = 1_000

/** Reads everything back and records mismatches in `sentEvents`. */
export async function judge(judging: Judging): Promise<Judgement> {
  const { sentEvents, plan, policy, sinceStartMs } = judging
  const models = toDeviceModels(plan, sentEvents.facts)
  const model = toAlertModel(models, policy)
  const requiredAlerts = countRequired(model)
  const deadlineMs = sinceStartMs() + judging.settleMs
  const isOver = () => sinceStartMs() > deadlineMs
  await waitUntilQuiet(judging, requiredAlerts, isOver)
  await judgeDevices(judging, models, isOver)
  const alerts = await judgeAlerts(judging, model, isOver)
  if (judging.received !== null) await judgeWebhooks(judging, judging.received, alerts, isOver)
  const sessions = models.reduce((sum, device) => sum + device.sessions.length, 0)
  return { devices: models.length, sessions, alerts, requiredAlerts, model }
}

/** Waits for the expected number of alerts, until it stays the same and all are delivered. */
async function waitUntilQuiet(
  judging: Judging,
  required: number,
  isOver: () => boolean,
): Promise<void> {
  let last = -1
  let sinceMs = 0
  while (!isOver()) {
    const count = await countAlerts(judging.get)
    const nowMs = judging.sinceStartMs()
    if (count !== last) {
      last = count
      sinceMs = nowMs
    }
    const delivered = judging.received?.deliveries.size ?? count
    judging.onProgress(`settling: ${count} alerts of at least ${required}`)
    const complete = count >= required && (!judging.ownTenant || delivered >= count)
    if (complete && nowMs - sinceMs >= quietMs) return
    await judging.pause(100)
  }
}

async function judgeDevices(
  judging: Judging,
  models: DeviceModel[],
  isOver: () => boolean,
): Promise<void> {
  let left = models
  for (let round = 1; ; round++) {
    const wrong: { model: DeviceModel; found: Mismatch[] }[] = []
    let done = 0
    await eachAtOnce(left, readsAtOnce, async (model) => {
      const found = await checkOne(judging, model)
      if (found.length > 0) wrong.push({ model, found })
      done++
      if (done % 50 === 0) judging.onProgress(`checking devices: ${done} of ${left.length}`)
    })
    if (wrong.length === 0) return
    if (isOver()) {
      for (const { found } of wrong)
        for (const one of found) addMismatch(judging.sentEvents.mismatches, one)
      return
    }
    judging.onProgress(`checking ${wrong.length} devices again, round ${round + 1}`)
    left = wrong.map((one) => one.model)
    await judging.pause(250)
  }
}

async function checkOne(judging: Judging, model: DeviceModel): Promise<Mismatch[]> {
  try {
    return checkDevice(model, await readHistory(judging.get, model.deviceId), judging)
  } catch (error) {
    if (!(error instanceof ApiAnswerError)) throw error
    return [{ what: 'device_answer', device_id: model.deviceId, got: error.message }]
  }
}

/** Works on all items, some of them at once. */
export async function eachAtOnce<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0
  const worker = async () => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await work(item)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

async function judgeAlerts(
  judging: Judging,
  model: AlertModel,
  isOver: () => boolean,
): Promise<ListedAlert[]> {
  const { tenantId, policy, ownTenant, sentEvents } = judging
  for (;;) {
    judging.onProgress('checking alerts')
    const list = await readAlerts(judging.get)
    const found = checkAlerts({ tenantId, model, policy, list, ownTenant })
    if (ownTenant) found.push(...(await checkFilters(judging, list.alerts)))
    if (found.length === 0 || isOver()) {
      for (const one of found) addMismatch(sentEvents.mismatches, one)
      return list.alerts.filter((alert) => model.has(alert.entity.session.session_id))
    }
    await judging.pause(500)
  }
}

/** Checks filters and totals against the complete list. */
async function checkFilters(judging: Judging, alerts: ListedAlert[]): Promise<Mismatch[]> {
  const found: Mismatch[] = []
  const compare = async (filters: Record<string, string>, matching: ListedAlert[]) => {
    const got = await countAlerts(judging.get, filters)
    if (got !== matching.length) {
      const what = `alerts_total_${Object.keys(filters).join('_')}`
      found.push({ what, expected: matching.length, got })
    }
  }
  for (const decision of ['REVIEW', 'BLOCK']) {
    await compare(
      { decision },
      alerts.filter((alert) => alert.decision.action === decision),
    )
  }
  await compare({ disposition: 'OPEN' }, alerts)
  const device_id = alerts[0]?.entity.device.device_id
  if (device_id !== undefined) {
    await compare(
      { device_id },
      alerts.filter((alert) => alert.entity.device.device_id === device_id),
    )
  }
  return found
}

async function judgeWebhooks(
  judging: Judging,
  received: Received,
  alerts: ListedAlert[],
  isOver: () => boolean,
): Promise<void> {
  // In a given tenant, alerts from before the run were delivered before it.
  const ours = alerts.filter((alert) => Date.parse(alert.created_at) >= judging.startedAtMs)
  for (;;) {
    judging.onProgress('checking webhooks')
    const found = checkWebhooks(ours, received)
    found.push(...(await checkLeftOver(judging, received)))
    if (found.length === 0 || isOver()) {
      for (const one of found) addMismatch(judging.sentEvents.mismatches, one)
      return
    }
    await judging.pause(500)
  }
}

/** Checks that every delivery has ended as delivered. */
async function checkLeftOver(judging: Judging, received: Received): Promise<Mismatch[]> {
  const found: Mismatch[] = []
  const compare = (state: string, deliveries: unknown[], expected: number) => {
    if (deliveries.length <= expected) return
    found.push({ what: `deliveries_${state}`, expected, got: deliveries.slice(0, 5) })
  }
  // Deliveries that were answered 500 on purpose may wait for their next attempt.
  const failed = [...received.deliveries.values()].filter((one) => one.faults === one.arrivals)
  const waiting = await Promise.all([
    judging.listDeliveries('pending'),
    judging.listDeliveries('sending'),
  ])
  compare('waiting', waiting.flat(), failed.length)
  if (!judging.ownTenant) return found
  for (const state of ['failed', 'skipped'] as const) {
    compare(state, await judging.listDeliveries(state), 0)
  }
  return found
}
