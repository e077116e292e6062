/**
 * Everything read back after the outages: each accepted event is stored once, each that deserves an
 * alert has raised exactly one, each alert was delivered, always with the same bytes; and what was
 * not accepted may be there, but nothing that nobody sent.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Receiver } from '../../support/deliveries/receiver.ts'
import { until } from '../../support/process/until.ts'
import type { OutageLoad } from './load.ts'
import type { OutageRig } from './rig.ts'

export type OutageFindings = {
  sent: number
  accepted: number
  /** Event ids: accepted and not stored, or there twice. */
  notStored: string[]
  storedTwice: string[]
  /** Stored, though nobody was answered a 200. */
  storedUnaccepted: number
  neverSent: string[]
  /** Devices whose history, as the api tells it, has another number of sessions than one. */
  wrongHistory: string[]
  /** Devices. */
  withoutAlert: string[]
  withTwoAlerts: string[]
  alerts: number
  seqGaps: number
  /** Alert ids. */
  notDelivered: string[]
  otherBytes: string[]
  webhooks: number
}

export type CheckFacts = {
  load: OutageLoad
  receiver: Receiver
  tenantId: string
  apiKey: string
}

const settleLimitMs = 120_000
const historiesMax = 100

/** Waits until everything is worked off, then reads it. */
export async function checkOutages(rig: OutageRig, facts: CheckFacts): Promise<OutageFindings> {
  const { load, receiver, tenantId } = facts
  const wanted = [...load.accepted]
    .map((eventId) => load.sent.get(eventId)!)
    .filter((submission) => submission.alerts)
  const readAlerts = async () =>
    (
      await rig.postgres.query<{ alert_id: string; device_id: string; seq: string }>(
        'select alert_id, device_id, seq from alerts where tenant_id = $1 order by seq',
        [tenantId],
      )
    ).rows
  await patiently('all is stored', async () => {
    const stored = await readStored(rig, tenantId)
    return [...load.accepted].every((eventId) => stored.has(eventId))
  })
  await patiently('all alerts are raised', async () => {
    const devices = new Set((await readAlerts()).map((row) => row.device_id))
    return wanted.every(({ device }) => devices.has(device))
  })
  await patiently('all is delivered', async () => {
    const { rows } = await rig.postgres.query<{ n: number }>(
      `select count(*)::int as n from deliveries where tenant_id = $1 and state <> 'delivered'`,
      [tenantId],
    )
    return rows[0]!.n === 0
  })
  // Whatever would be raised or sent a second time would be on its way by now.
  await pause(1_000)
  const stored = await readStored(rig, tenantId)
  const alerts = await readAlerts()
  const perDevice = Map.groupBy(alerts, (alert) => alert.device_id)
  const received = readReceived(receiver)
  return {
    sent: load.sent.size,
    accepted: load.accepted.size,
    notStored: [...load.accepted].filter((eventId) => !stored.has(eventId)),
    storedTwice: [...stored].filter(([, times]) => times > 1).map(([eventId]) => eventId),
    storedUnaccepted: [...stored.keys()].filter((eventId) => !load.accepted.has(eventId)).length,
    neverSent: [...stored.keys()].filter((eventId) => !load.sent.has(eventId)),
    wrongHistory: await findWrongHistories(rig, facts),
    withoutAlert: wanted.map(({ device }) => device).filter((device) => !perDevice.has(device)),
    withTwoAlerts: [...perDevice].filter(([, own]) => own.length > 1).map(([device]) => device),
    alerts: alerts.length,
    seqGaps: alerts.filter(({ seq }, at) => Number(seq) !== at + 1).length,
    notDelivered: alerts.map((row) => row.alert_id).filter((id) => !received.has(id)),
    otherBytes: [...received].filter(([, forms]) => forms.size > 1).map(([id]) => id),
    webhooks: receiver.requests.length,
  }
}

/** How often each event is there, as readers see it. */
async function readStored(
  { clickhouse }: OutageRig,
  tenantId: string,
): Promise<Map<string, number>> {
  const result = await clickhouse.query({
    query:
      'select event_id, count() as times from telemetry final ' +
      'where tenant_id = {tenantId:String} group by event_id',
    query_params: { tenantId },
    format: 'JSONEachRow',
  })
  const rows = (await result.json()) as { event_id: string; times: number }[]
  return new Map(rows.map(({ event_id: eventId, times }) => [eventId, Number(times)]))
}

/** Every device sent one session; asked of some, spread over the whole run. */
async function findWrongHistories(rig: OutageRig, facts: CheckFacts): Promise<string[]> {
  const { load, apiKey } = facts
  const accepted = [...load.accepted]
  const step = Math.max(1, Math.floor(accepted.length / historiesMax))
  const wrong: string[] = []
  for (let at = 0; at < accepted.length; at += step) {
    const { device } = load.sent.get(accepted[at]!)!
    const response = await fetch(`${rig.urls.api}/v1/di/devices/${device}`, {
      headers: { authorization: `Bearer ${apiKey}` },
    })
    const { sessions_total: sessions } = (await response.json()) as { sessions_total?: number }
    if (sessions !== 1) wrong.push(`${device}: ${response.status}, ${sessions} sessions`)
  }
  return wrong
}

/** By alert, every form it came in: one, however often it is sent. */
function readReceived({ requests }: Receiver): Map<string, Set<string>> {
  const received = new Map<string, Set<string>>()
  for (const { body, headers } of requests) {
    const text = body.toString()
    const { alert_id } = JSON.parse(text) as { alert_id: string }
    const forms = received.get(alert_id) ?? new Set()
    received.set(alert_id, forms.add(`${headers['x-service-delivery']} ${text}`))
  }
  return received
}

/** What does not come in time is found missing by the check that follows. */
async function patiently(what: string, holds: () => Promise<boolean>): Promise<void> {
  await until(what, holds, settleLimitMs).catch(() => undefined)
}
