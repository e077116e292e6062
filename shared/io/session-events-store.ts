/**
 * Finds the earlier events of some sessions. An alert tells of the first event that deserved it;
 * whoever is about to raise one looks whether that was an earlier event, which another scorer may
 * have in hand. Nearly always there is none, and that is cheap to see in `activity`.
 */
import { TupleParam } from '@clickhouse/client'
import { activityQueryMax, sessionEventsMax, sessionQueryMax } from '#shared/core/limits.ts'
import type { AcceptedEvent } from '#shared/core/messages.ts'
import type { Reason } from '#shared/core/scoring.ts'
import type { Telemetry } from '#shared/core/telemetry.ts'
import { hashesIn, smallQuery, toHash, toKeyHash } from './activity-rows-store.ts'
import type { Clickhouse } from './clickhouse.ts'

/** A session up to one of its events. */
export type SessionPart = {
  tenantId: string
  deviceId: string
  sessionId: string
  beforePosition: number
}

export type EarlierQuestion = {
  parts: readonly SessionPart[]
  /** Positions of events that are known already. */
  known: readonly number[]
}

/**
 * @returns the other events of these sessions before the given positions, each once, with the
 *   position and the time at which it first came; of a session that has more, a thousand
 */
export async function findEarlierEvents(
  clickhouse: Clickhouse,
  { parts, known }: EarlierQuestion,
): Promise<AcceptedEvent[]> {
  const found: AcceptedEvent[] = []
  for (let at = 0; at < parts.length; at += activityQueryMax) {
    const some = parts.slice(at, at + activityQueryMax)
    const question = { parts: some, known }
    const firsts = await findFirsts(clickhouse, question)
    const open = some.filter((part) => firsts.sessions.has(keyOf(part)))
    for (let from = 0; from < open.length; from += sessionQueryMax) {
      const session = open.slice(from, from + sessionQueryMax)
      found.push(...(await readEvents(clickhouse, session, firsts)))
    }
  }
  return found
}

const keyOf = (of: Pick<SessionPart, 'tenantId' | 'sessionId'>): string =>
  `${of.tenantId} ${toKeyHash('session', of.sessionId)}`

/** When the events of some sessions first came. */
type Firsts = {
  sessions: Set<string>
  /** By session and event. */
  events: Map<string, { position: number; receivedAtMs: number }>
}

async function findFirsts(
  clickhouse: Clickhouse,
  { parts, known }: EarlierQuestion,
): Promise<Firsts> {
  const positions = new Set(known)
  const before = new Map<string, number>()
  for (const part of parts) {
    const key = keyOf(part)
    before.set(key, Math.max(part.beforePosition, before.get(key) ?? 0))
  }
  const hashes = new Set(parts.map((part) => toKeyHash('session', part.sessionId)))
  const sessions = hashesIn('key_hash', hashes, 'sessions')
  const result = await clickhouse.query({
    query: `
      select tenant_id, toString(key_hash), toString(event_hash), min(position),
        toUnixTimestamp64Milli(argMin(received_at, position))
      from activity
      where tenant_id in {tenants:Array(String)} and ${sessions.condition}
        and position < {last:UInt64}
      group by tenant_id, key_hash, event_hash`,
    query_params: {
      tenants: [...new Set(parts.map((part) => part.tenantId))],
      ...sessions.params,
      last: Math.max(...before.values()),
    },
    use_multipart_params_auto: true,
    clickhouse_settings: smallQuery,
    format: 'JSONCompactEachRow',
  })
  const firsts: Firsts = { sessions: new Set(), events: new Map() }
  type Row = [string, string, string, number | string, number | string]
  for (const [tenantId, hash, eventHash, first, at] of await result.json<Row>()) {
    const key = `${tenantId} ${hash}`
    const position = Number(first)
    if (positions.has(position) || position >= (before.get(key) ?? 0)) continue
    firsts.sessions.add(key)
    firsts.events.set(`${key} ${eventHash}`, { position, receivedAtMs: Number(at) })
  }
  return firsts
}

type EventRow = [
  tenantId: string,
  eventId: string,
  raspScore: number,
  raspAction: AcceptedEvent['rasp_action'],
  reasons: string,
  policyVersion: number,
  policyHash: string,
  epoch: number | string,
  body: string,
]

async function readEvents(
  clickhouse: Clickhouse,
  open: readonly SessionPart[],
  firsts: Firsts,
): Promise<AcceptedEvent[]> {
  const wanted = new Map(
    open.map((part) => [[part.tenantId, part.deviceId, part.sessionId].join('\n'), part]),
  )
  const result = await clickhouse.query({
    query: `
      select tenant_id, event_id, rasp_score, toString(rasp_action), reasons, policy_version,
        policy_hash, epoch, body
      from telemetry final
      where (tenant_id, device_id, session_id) in {keys:Array(Tuple(String, String, String))}
      order by received_at
      limit {most:UInt32} by tenant_id, device_id, session_id`,
    query_params: {
      keys: [...wanted.values()].map(
        (part) => new TupleParam([part.tenantId, part.deviceId, part.sessionId]),
      ),
      most: sessionEventsMax,
    },
    use_multipart_params_auto: true,
    format: 'JSONCompactEachRow',
  })
  const events: AcceptedEvent[] = []
  for (const row of await result.json<EventRow>()) {
    const [tenantId, eventId, score, action, reasons, version, policyHash, epoch, text] = row
    const body = JSON.parse(text) as Telemetry
    const key = keyOf({ tenantId, sessionId: body.session_id })
    const first = firsts.events.get(`${key} ${toHash(eventId)}`)
    if (first === undefined) continue
    events.push({
      tenant_id: tenantId,
      event_id: eventId,
      position: first.position,
      received_at: first.receivedAtMs,
      rasp_score: score,
      rasp_action: action,
      reasons: JSON.parse(reasons) as Reason[],
      policy_version: version,
      policy_hash: policyHash,
      epoch: Number(epoch),
      body,
    })
  }
  return events.sort((a, b) => a.position - b.position)
}
