/**
 * Compares the clients' records with the stores and the APIs after a drill: events, alerts,
 * webhooks and the history of every device.
 */
import { checkList } from '../../../../deploy/fleet/check/check-alerts.ts'
import { checkWebhooks } from '../../../../deploy/fleet/check/check-webhooks.ts'
import { checkDevice } from '../../../../deploy/fleet/check/device-model.ts'
import { eachAtOnce } from '../../../../deploy/fleet/check/judge.ts'
import {
  type ListedAlert,
  readAlerts,
  readHistory,
} from '../../../../deploy/fleet/check/read-back.ts'
import type { Random } from '../../../../deploy/fleet/phones/random.ts'
import { shuffle } from '../../../../deploy/fleet/phones/random.ts'
import type { DeliveryReceiver } from '../../../../deploy/fleet/send/deliveries.ts'
import type { Tenant } from '../../../support/http/tenant-client.ts'
import type { TestStack } from '../../../support/process/stack.ts'
import { until } from '../../../support/process/until.ts'
import { readProgress } from '../../../support/telemetry/read-stream.ts'
import type { LoadedDevice, PhoneLoad } from './phone-load.ts'
import {
  callApi,
  connectQuietly,
  endClaims,
  readDeliveries,
  readStored,
  readStream,
} from './read-back.ts'
import { awaitAllReady } from './stack-children.ts'
import type { Disposed, StackUsers } from './users.ts'

/** Breaches, where each list must be empty, and counts of the compared items. */
export type StackFindings = {
  breaches: Record<string, string[]>
  accepted: number
  /** Events that are in the stream more than once: a client without a response sends again. */
  storedTwice: number
  alerts: number
  devices: number
  webhooks: number
  /** Webhooks that were sent more than once, and deliveries recorded with more than one attempt. */
  webhooksAgain: number
  deliveriesAgain: number
  settledMs: number
}

export type Comparison = {
  running: TestStack
  tenants: readonly Tenant[]
  load: PhoneLoad
  receiver: DeliveryReceiver
  users: StackUsers
  random: Random
  /** Devices to read back; the others are compared by their events and alerts only. */
  devicesMax?: number
  /** Whether to end the claims of killed delivery processes instead of waiting for their expiry. */
  hurryClaims?: boolean
  onStep?: (line: string) => void
}

const settleLimitMs = 240_000
const readersAtOnce = 12

/**
 * Facts have wall-clock times. Two processes read their clocks at different moments, and instants
 * are truncated to a millisecond.
 */
const clock = { startedAtMs: 0, clockToleranceMs: 5 }

/** Waits until all backlogs are empty, then reads and compares everything. */
export async function findBreaches(comparison: Comparison): Promise<StackFindings> {
  const { running, tenants, load, users } = comparison
  const { received } = comparison.receiver
  const report = comparison.onStep ?? (() => undefined)
  const startedMs = performance.now()
  const unsettled = await settle(comparison)
  const settledMs = performance.now() - startedMs
  report(`settled after ${Math.round(settledMs / 1_000)} s`)
  const nats = await connectQuietly(running.stack)
  const inStream = await readStream(nats).finally(nats.close)
  const stored = await readStored(running.stack, tenants)
  const accepted = [...load.accepted]
  report(`${accepted.length} accepted events compared`)
  const alerts = await compareAlerts(comparison)
  report(`${alerts.alerts.length} alerts compared`)
  const devices = await compareDevices(comparison)
  report(`${devices.count} devices compared`)
  const deliveries = await readDeliveries(running.stack)
  const webhooks = [...received.deliveries.values()]
  const times = [...inStream.values()]
  return {
    breaches: {
      'backlogs not empty in time': unsettled,
      'events never accepted': load.givenUp,
      'responses of 200 with a wrong body': load.wrongAnswers,
      'accepted and not in the stream': accepted.filter((id) => !inStream.has(id)),
      'accepted and not in ClickHouse': accepted.filter((id) => !stored.has(id)),
      'stored and never accepted': [...stored].filter((id) => !load.accepted.has(id)),
      ...alerts.breaches,
      'webhooks that are wrong': checkWebhooks(alerts.alerts, received).map((one) =>
        JSON.stringify(one),
      ),
      'webhooks that were never accepted': webhooks
        .filter(({ accepted }) => accepted === 0)
        .map(({ deliveryId }) => deliveryId),
      'devices whose history is not the client’s': devices.wrong,
      'histories that shrank': users.shrunk,
    },
    accepted: accepted.length,
    storedTwice: times.filter((count) => count > 1).length,
    alerts: alerts.alerts.length,
    devices: devices.count,
    webhooks: webhooks.length,
    webhooksAgain: webhooks.filter(({ arrivals }) => arrivals > 1).length,
    deliveriesAgain: deliveries.repeated,
    settledMs,
  }
}

/** @returns the backlogs that were not empty in time */
async function settle({ running, load, users, hurryClaims }: Comparison): Promise<string[]> {
  const late: string[] = []
  const waitFor = async (what: string, limitMs: number, holds: () => Promise<boolean>) => {
    const attempt = () => holds().catch(() => false)
    await until(what, attempt, limitMs).catch((error: Error) => late.push(error.message))
  }
  await awaitAllReady(running)
  await users.stop()
  await load.stop()
  const nats = await connectQuietly(running.stack)
  await waitFor('consumers acknowledge all', settleLimitMs, async () => {
    const { lastSequence, acknowledged } = await readProgress(nats)
    return acknowledged >= lastSequence
  })
  await nats.close()
  if (hurryClaims === true) await endClaims(running.stack)
  // A refused delivery is retried after five seconds; a claim of a killed process lasts 30 s.
  await waitFor('all is delivered', settleLimitMs, async () => {
    return (await readDeliveries(running.stack)).undelivered === 0
  })
  return late
}

type AlertFindings = { alerts: ListedAlert[]; breaches: Record<string, string[]> }

async function compareAlerts(comparison: Comparison): Promise<AlertFindings> {
  const { running, tenants, load, users } = comparison
  const expected = toExpectedAlerts(load.devices.values())
  const breaches: Record<string, string[]> = {
    'alerts missing': [],
    'alerts there twice': [],
    'alerts without an event': [],
    'alert lists that are wrong': [],
    'dispositions other than the operator’s': [],
  }
  const note = (what: string, detail: string) => breaches[what]!.push(detail)
  const all: ListedAlert[] = []
  for (const tenant of tenants) {
    const list = await callApi(running.stack, tenant, readAlerts)
    all.push(...list.alerts)
    for (const one of checkList(list, true)) {
      note('alert lists that are wrong', `${tenant.tenant_id}: ${JSON.stringify(one)}`)
    }
    const expectedKeys = expected.get(tenant.tenant_id) ?? new Set()
    const raised = new Set<string>()
    for (const { alert_id: id, entity, decision, disposition } of list.alerts) {
      const key = alertKey(entity.device.device_id, entity.session.session_id, decision.action)
      if (raised.has(key)) note('alerts there twice', key)
      raised.add(key)
      if (!expectedKeys.has(key)) note('alerts without an event', key)
      const { confirmed, possible } = users.disposed.get(id) ?? untouched
      const isDisposed = disposition === confirmed || possible.has(disposition)
      if (!isDisposed) note('dispositions other than the operator’s', id)
    }
    for (const key of expectedKeys) if (!raised.has(key)) note('alerts missing', key)
  }
  return { alerts: all, breaches }
}

const untouched: Disposed = { confirmed: 'OPEN', possible: new Set() }

const alertKey = (deviceId: string, sessionId: string, action: string) =>
  `${deviceId} ${sessionId} ${action}`

/** The keys of the alerts that must exist, by tenant: one for each session and action. */
function toExpectedAlerts(devices: Iterable<LoadedDevice>): Map<string, Set<string>> {
  const expected = new Map<string, Set<string>>()
  for (const { tenantId, deviceId, sessions } of devices) {
    const keys = expected.get(tenantId) ?? new Set()
    expected.set(tenantId, keys)
    for (const { sessionId, facts } of sessions) {
      for (const { scored } of facts) {
        if (scored.action !== 'ALLOW') keys.add(alertKey(deviceId, sessionId, scored.action))
      }
    }
  }
  return expected
}

async function compareDevices(comparison: Comparison): Promise<{ count: number; wrong: string[] }> {
  const { running, tenants, load, random, devicesMax = Infinity } = comparison
  const all = [...load.devices.values()].filter((one) => one.open === 0 && one.facts.length > 0)
  const chosen = all.length > devicesMax ? shuffle(all, random).slice(0, devicesMax) : all
  const wrong: string[] = []
  for (const tenant of tenants) {
    const devices = chosen.filter(({ tenantId }) => tenantId === tenant.tenant_id)
    await callApi(running.stack, tenant, (get) =>
      eachAtOnce(devices, readersAtOnce, async (device) => {
        const found = checkDevice(device, await readHistory(get, device.deviceId), clock)
        wrong.push(...found.map((one) => JSON.stringify(one)))
      }),
    )
  }
  return { count: chosen.length, wrong }
}

const shownMax = 5

/** @returns the broken guarantees, each with its first examples */
export function judgeBreaches({ breaches }: Pick<StackFindings, 'breaches'>): string[] {
  return Object.entries(breaches)
    .filter(([, found]) => found.length > 0)
    .map(([what, found]) => {
      const first = found.slice(0, shownMax).join('; ').slice(0, 600)
      return `${what}: ${found.length} (${first}${found.length > shownMax ? ' ...' : ''})`
    })
}
