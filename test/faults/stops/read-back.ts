/**
 * Everything read back after all the stops: each accepted event is stored, each that deserves an
 * alert has raised exactly one, and each alert was delivered exactly once.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Receiver } from '../../support/deliveries/receiver.ts'
import type { StopsLoad } from './load.ts'
import type { Processes } from './rig.ts'

export type StopsFindings = {
  /** Event ids. */
  notStored: string[]
  /** Stored events that nobody was answered for: their answers were lost, or never sent. */
  unanswered: number
  /** Devices. */
  withoutAlert: string[]
  withTwoAlerts: string[]
  /** Alerts there are; `seq` must count them. */
  alerts: number
  seqGaps: number
  /** Alert ids. */
  notDelivered: string[]
  deliveredTwice: string[]
  /** Deliveries that did not end as delivered at the first attempt. */
  retried: number
  /** Tenants whose creation was answered and that are not there. */
  tenantsLost: string[]
}

/** What makes no progress for so long is not coming. */
const stuckLimitMs = 30_000
const lookMs = 100

/** Waits until the backlog is worked off, then reads everything. */
export async function checkStops(
  processes: Processes,
  facts: { load: StopsLoad; receiver: Receiver; tenantId: string; created: readonly string[] },
): Promise<StopsFindings> {
  const { load, receiver, tenantId, created } = facts
  const { postgres } = processes
  const wanted = [...load.accepted.values()].filter((submission) => submission.alerts)
  const readStored = () =>
    processes.query<{ event_id: string }>(
      'select distinct event_id from telemetry where tenant_id = {tenantId:String}',
      { tenantId },
    )
  const readAlerts = async () =>
    (
      await postgres.query<{ alert_id: string; device_id: string; seq: string }>(
        'select alert_id, device_id, seq from alerts where tenant_id = $1 order by seq',
        [tenantId],
      )
    ).rows
  await settle(async () => {
    const ids = new Set((await readStored()).map((row) => row.event_id))
    return [...load.accepted.keys()].filter((eventId) => !ids.has(eventId)).length
  })
  await settle(async () => {
    const devices = new Set((await readAlerts()).map((row) => row.device_id))
    return wanted.filter(({ device }) => !devices.has(device)).length
  })
  await settle(async () => {
    const { rows } = await postgres.query<{ n: number }>(
      `select count(*)::int as n from deliveries where tenant_id = $1 and state <> 'delivered'`,
      [tenantId],
    )
    return rows[0]!.n
  })
  // Whatever would be sent a second time would be on its way by now.
  await pause(1_500)
  const stored = new Set((await readStored()).map((row) => row.event_id))
  const alerts = await readAlerts()
  const perDevice = Map.groupBy(alerts, (alert) => alert.device_id)
  const received = countReceived(receiver)
  const { rows: retried } = await postgres.query<{ n: number }>(
    `select count(*)::int as n from deliveries
     where tenant_id = $1 and (state <> 'delivered' or attempts <> 1)`,
    [tenantId],
  )
  const { rows: present } = await postgres.query<{ tenant_id: string }>(
    'select tenant_id from tenants',
  )
  const tenants = new Set(present.map((row) => row.tenant_id))
  return {
    notStored: [...load.accepted.keys()].filter((eventId) => !stored.has(eventId)),
    unanswered: [...stored].filter((eventId) => !load.accepted.has(eventId)).length,
    withoutAlert: wanted.map(({ device }) => device).filter((device) => !perDevice.has(device)),
    withTwoAlerts: [...perDevice].filter(([, own]) => own.length > 1).map(([device]) => device),
    alerts: alerts.length,
    seqGaps: alerts.filter(({ seq }, at) => Number(seq) !== at + 1).length,
    notDelivered: alerts.map((row) => row.alert_id).filter((id) => !received.has(id)),
    deliveredTwice: [...received].filter(([, times]) => times > 1).map(([id]) => id),
    retried: retried[0]!.n,
    tenantsLost: created.filter((tenant) => !tenants.has(tenant)),
  }
}

/** Waits until nothing is missing; what stays away is found missing by the check that follows. */
async function settle(readMissing: () => Promise<number>): Promise<void> {
  let least = Number.POSITIVE_INFINITY
  let movedMs = performance.now()
  while (least > 0 && performance.now() - movedMs < stuckLimitMs) {
    const missing = await readMissing()
    if (missing < least) {
      least = missing
      movedMs = performance.now()
    }
    await pause(lookMs)
  }
}

function countReceived({ requests }: Receiver): Map<string, number> {
  const received = new Map<string, number>()
  for (const { body } of requests) {
    const { alert_id } = JSON.parse(body.toString()) as { alert_id: string }
    received.set(alert_id, (received.get(alert_id) ?? 0) + 1)
  }
  return received
}
