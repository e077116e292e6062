/**
 * Compares the server signals of events with what their phones are. Signals that only the order of
 * events can tell (shared keys, counters) are looked for on the last event of a phone, and again
 * until the settling time is over.
 */
import type { FleetContext } from '../fleet-context.ts'
import { addMismatch, type SentEvents } from '../send/sent-events.ts'
import type { Registered } from './exchange.ts'
import { type OrderFlag, orderFlags } from './kinds.ts'

/** What the service knows of an event. */
export type EventFindings = {
  /** Server signals of category `attestation`. */
  signals: Record<string, unknown>
  /** Codes of the decision's reasons. */
  flags: readonly string[]
}

export type FindingsByEvent = Map<string, EventFindings>

export type CheckedSignals = {
  events: number
  /** How many events have each signal, and each flag of the order. */
  counts: Record<string, number>
}

type Checking = {
  registered: readonly Registered[]
  /** Events that the tenant's own secret signed. */
  madeUp: readonly string[]
  mismatches: SentEvents['mismatches']
  read: (eventIds: readonly string[]) => Promise<FindingsByEvent>
  isOver: () => boolean
  pause: () => Promise<void>
}

type Expected = {
  eventId: string
  deviceId: string
  what: string
  has: readonly string[]
  lacks: readonly string[]
  orderFlag: OrderFlag | null
}

/** A flag that must not be there could come with a later decision, so it is looked for again. */
const rightReadsMin = 3

/** Checks everything. @returns what was found at the end */
export async function checkSignals(checking: Checking): Promise<CheckedSignals> {
  const expected = listExpected(checking)
  const eventIds = expected.map(({ eventId }) => eventId)
  let rightReads = 0
  for (;;) {
    const found = await checking.read(eventIds)
    const wrong = expected.filter((one) => !agrees(one, found.get(one.eventId)))
    rightReads = wrong.length === 0 ? rightReads + 1 : 0
    if (rightReads === rightReadsMin || checking.isOver()) {
      for (const one of wrong) note(checking, one, found.get(one.eventId))
      return { events: found.size, counts: countFindings(found) }
    }
    await checking.pause()
  }
}

function listExpected({ registered, madeUp }: Checking): Expected[] {
  const own = registered.flatMap(({ member, events }): Expected[] => {
    const { kind, phone } = member
    const last = events.at(-1)
    if (last === undefined) return []
    const { name: what, has, lacks, orderFlag = null } = kind
    const { eventId } = last
    return [{ eventId, deviceId: phone.deviceId, what, has, lacks, orderFlag }]
  })
  const stolen = madeUp.map((eventId) => ({
    eventId,
    deviceId: 'made up',
    what: 'extracted-secret',
    has: ['missing'],
    lacks: ['install_key', 'verified', 'rejected', 'hardware_backed'],
    orderFlag: null,
  }))
  return [...own, ...stolen]
}

const listOrderFlags = ({ flags }: EventFindings): OrderFlag[] =>
  orderFlags.filter((flag) => flags.includes(flag))

function agrees({ has, lacks, orderFlag }: Expected, got: EventFindings | undefined): boolean {
  if (got === undefined) return false
  const { signals } = got
  return (
    has.every((name) => signals[name] === true) &&
    lacks.every((name) => signals[name] !== true) &&
    listOrderFlags(got).join() === (orderFlag ?? '')
  )
}

function note(
  { mismatches }: Checking,
  { what, eventId, deviceId, has, lacks, orderFlag }: Expected,
  got: EventFindings | undefined,
): void {
  const expected = { event_id: eventId, has, lacks, flag: orderFlag }
  const mismatch = { what: `signals_${what}`, device_id: deviceId, expected, got: got ?? null }
  addMismatch(mismatches, mismatch)
}

function countFindings(found: FindingsByEvent): Record<string, number> {
  const counts: Record<string, number> = {}
  const count = (name: string) => {
    counts[name] = (counts[name] ?? 0) + 1
  }
  for (const one of found.values()) {
    for (const [name, value] of Object.entries(one.signals)) if (value === true) count(name)
    for (const flag of listOrderFlags(one)) count(flag)
  }
  return counts
}

/** Event ids of one query. */
const idsPerQuery = 200

/**
 * Reads what is known of events by the SQL of the console. An event has a row of its decision where
 * that adds something to the edge's score, as the flags of the order do.
 */
export async function readFindings(
  context: FleetContext,
  tenantId: string,
  eventIds: readonly string[],
): Promise<FindingsByEvent> {
  const found: FindingsByEvent = new Map()
  const path = `/tenants/${encodeURIComponent(tenantId)}/sql`
  for (let at = 0; at < eventIds.length; at += idsPerQuery) {
    const ids = eventIds.slice(at, at + idsPerQuery).map((id) => `'${id}'`)
    const sql = `
      SELECT e.event_id, toString(e.server_signals), toString(d.flags)
      FROM analytics.events AS e
      LEFT JOIN analytics.decisions AS d ON d.event_id = e.event_id
      WHERE e.event_id IN (${ids.join(', ')})`
    const answer = (await context.adminFetch('POST', path, { sql })) as { rows: unknown[][] }
    for (const [eventId, signals, flags] of answer.rows) {
      const { attestation = {} } = JSON.parse(String(signals)) as {
        attestation?: Record<string, unknown>
      }
      const codes = String(flags).match(/\w+/g) ?? []
      found.set(String(eventId), { signals: attestation, flags: codes })
    }
  }
  return found
}
