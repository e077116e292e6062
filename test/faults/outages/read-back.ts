/**
 * Reads back everything after the outages: each accepted event must be stored once, each expected
 * alert raised once, and each alert delivered, always with the same bytes. Events without a 200 may
 * be stored, but nothing that was not sent.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Receiver } from '../../support/deliveries/receiver.ts'
import { until } from '../../support/process/until.ts'
import {
  type AlertFindings,
  compareAlerts,
  countDeliveries,
  readReceived,
  readStoredAlerts,
  readStoredEvents,
} from '../support/stored-facts.ts'
import type { OutageLoad } from './load.ts'
import type { OutageRig } from './rig.ts'

export type OutageFindings = AlertFindings & {
  sent: number
  accepted: number
  /** Event ids: accepted and not stored, or stored twice. */
  notStored: string[]
  storedTwice: string[]
  /** Stored without a 200. */
  storedUnaccepted: number
  neverSent: string[]
  /** Devices whose history in the api has a number of sessions other than one. */
  wrongHistory: string[]
  /** Alert ids. */
  otherBytes: string[]
  webhooks: number
}

export type ReadBackFacts = {
  load: OutageLoad
  receiver: Receiver
  tenantId: string
  apiKey: string
}

const settleLimitMs = 120_000
const historiesMax = 100

/** Waits until the backlog is empty, then reads everything. */
export async function readBackOutages(
  rig: OutageRig,
  facts: ReadBackFacts,
): Promise<OutageFindings> {
  const { load, receiver, tenantId } = facts
  const { clickhouse, postgres } = rig
  const accepted = [...load.accepted]
  const submissions = accepted.map((eventId) => load.sent.get(eventId)!)
  const devices = submissions.filter(({ alerts }) => alerts).map(({ device }) => device)
  await waitFor('all is stored', async () => {
    const stored = await readStoredEvents(clickhouse, tenantId)
    return accepted.every((eventId) => stored.has(eventId))
  })
  await waitFor('all alerts are raised', async () => {
    const raised = new Set((await readStoredAlerts(postgres, tenantId)).map((row) => row.device_id))
    return devices.every((device) => raised.has(device))
  })
  await waitFor('all is delivered', async () => {
    return (await countDeliveries(postgres, tenantId, `state <> 'delivered'`)) === 0
  })
  // A second alert or webhook would arrive in this time.
  await pause(1_000)
  const stored = await readStoredEvents(clickhouse, tenantId)
  const received = readReceived(receiver)
  return {
    ...compareAlerts(await readStoredAlerts(postgres, tenantId), devices, received),
    sent: load.sent.size,
    accepted: accepted.length,
    notStored: accepted.filter((eventId) => !stored.has(eventId)),
    storedTwice: [...stored].filter(([, times]) => times > 1).map(([eventId]) => eventId),
    storedUnaccepted: [...stored.keys()].filter((eventId) => !load.accepted.has(eventId)).length,
    neverSent: [...stored.keys()].filter((eventId) => !load.sent.has(eventId)),
    wrongHistory: await findWrongHistories(rig, facts),
    otherBytes: [...received].filter(([, own]) => new Set(own).size > 1).map(([id]) => id),
    webhooks: receiver.requests.length,
  }
}

/** Every device sent one session. Reads some devices, evenly over the run. */
async function findWrongHistories(rig: OutageRig, facts: ReadBackFacts): Promise<string[]> {
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

/** After the limit the comparison reports what is missing. */
async function waitFor(what: string, holds: () => Promise<boolean>): Promise<void> {
  await until(what, holds, settleLimitMs).catch(() => undefined)
}
