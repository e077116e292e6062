/**
 * Reads back everything after all stops: each accepted event must be stored, each expected alert
 * raised once, and each alert delivered once.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Receiver } from '../../support/deliveries/receiver.ts'
import {
  type AlertFindings,
  compareAlerts,
  countDeliveries,
  readReceived,
  readStoredAlerts,
  readStoredEvents,
} from '../support/stored-facts.ts'
import type { StopsLoad } from './load.ts'
import type { Processes } from './rig.ts'

export type StopsFindings = AlertFindings & {
  /** Event ids. */
  notStored: string[]
  /** Stored events without a response of 200. */
  unanswered: number
  /** Alert ids. */
  deliveredTwice: string[]
  /** Deliveries that did not end as delivered at the first attempt. */
  retried: number
  /** Tenants that are missing although their creation was confirmed. */
  tenantsLost: string[]
}

/** After this time without progress the missing rows count as missing. */
const stuckLimitMs = 30_000
const pollMs = 100

/** Waits until the backlog is empty, then reads everything. */
export async function readBackStops(
  { clickhouse, postgres }: Processes,
  facts: { load: StopsLoad; receiver: Receiver; tenantId: string; created: readonly string[] },
): Promise<StopsFindings> {
  const { load, receiver, tenantId, created } = facts
  const alerting = [...load.accepted.values()].filter((submission) => submission.alerts)
  const devices = alerting.map(({ device }) => device)
  const accepted = [...load.accepted.keys()]
  await settle(async () => {
    const stored = await readStoredEvents(clickhouse, tenantId)
    return accepted.filter((eventId) => !stored.has(eventId)).length
  })
  await settle(async () => {
    const raised = new Set((await readStoredAlerts(postgres, tenantId)).map((row) => row.device_id))
    return devices.filter((device) => !raised.has(device)).length
  })
  await settle(() => countDeliveries(postgres, tenantId, `state <> 'delivered'`))
  // A second request for a webhook would arrive in this time.
  await pause(1_500)
  const stored = await readStoredEvents(clickhouse, tenantId)
  const received = readReceived(receiver)
  const { rows } = await postgres.query<{ tenant_id: string }>('select tenant_id from tenants')
  const tenants = new Set(rows.map((row) => row.tenant_id))
  return {
    ...compareAlerts(await readStoredAlerts(postgres, tenantId), devices, received),
    notStored: accepted.filter((eventId) => !stored.has(eventId)),
    unanswered: [...stored.keys()].filter((eventId) => !load.accepted.has(eventId)).length,
    deliveredTwice: [...received].filter(([, own]) => own.length > 1).map(([id]) => id),
    retried: await countDeliveries(postgres, tenantId, `state <> 'delivered' or attempts <> 1`),
    tenantsLost: created.filter((tenant) => !tenants.has(tenant)),
  }
}

/** Waits until nothing is missing, or nothing changes any more. */
async function settle(readMissing: () => Promise<number>): Promise<void> {
  let least = Number.POSITIVE_INFINITY
  let changedMs = performance.now()
  while (least > 0 && performance.now() - changedMs < stuckLimitMs) {
    const missing = await readMissing()
    if (missing < least) {
      least = missing
      changedMs = performance.now()
    }
    await pause(pollMs)
  }
}
