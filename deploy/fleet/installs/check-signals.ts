/**
 * Compares the server signals of events with what their phones are. Signals that only the order of
 * events can tell (shared keys, counters) are looked for on the last event of a phone, and again
 * until the settling time is over.
 */
import type { FleetContext } from '../fleet-context.ts'
import { addMismatch, type SentEvents } from '../send/sent-events.ts'
import type { Registered } from './exchange.ts'

/** The signals of category `attestation` by event id. */
export type SignalsByEvent = Map<string, Record<string, unknown>>

export type CheckedSignals = {
  events: number
  /** How many events have each signal. */
  counts: Record<string, number>
}

type Checking = {
  registered: readonly Registered[]
  /** Events that the tenant's own secret signed. */
  madeUp: readonly string[]
  mismatches: SentEvents['mismatches']
  read: (eventIds: readonly string[]) => Promise<SignalsByEvent>
  isOver: () => boolean
  pause: () => Promise<void>
}

type Expected = {
  eventId: string
  deviceId: string
  what: string
  has: readonly string[]
  lacks: readonly string[]
}

/** Checks everything. @returns what was found at the end */
export async function checkSignals(checking: Checking): Promise<CheckedSignals> {
  const expected = listExpected(checking)
  const eventIds = expected.map(({ eventId }) => eventId)
  for (;;) {
    const found = await checking.read(eventIds)
    const wrong = expected.filter((one) => !agrees(one, found.get(one.eventId)))
    if (wrong.length === 0 || checking.isOver()) {
      for (const one of wrong) note(checking, one, found.get(one.eventId))
      return { events: found.size, counts: countSignals(found) }
    }
    await checking.pause()
  }
}

function listExpected({ registered, madeUp }: Checking): Expected[] {
  const own = registered.flatMap(({ member, events }): Expected[] => {
    const { kind, phone } = member
    const last = events.at(-1)
    if (last === undefined) return []
    const { name, has, lacks } = kind
    return [{ eventId: last.eventId, deviceId: phone.deviceId, what: name, has, lacks }]
  })
  const stolen = madeUp.map((eventId) => ({
    eventId,
    deviceId: 'made up',
    what: 'extracted-secret',
    has: ['missing'],
    lacks: ['install_key', 'verified', 'rejected', 'hardware_backed'],
  }))
  return [...own, ...stolen]
}

const agrees = ({ has, lacks }: Expected, got: Record<string, unknown> | undefined): boolean =>
  got !== undefined &&
  has.every((name) => got[name] === true) &&
  lacks.every((name) => got[name] !== true)

function note(
  { mismatches }: Checking,
  { what, deviceId, has, lacks }: Expected,
  got: Record<string, unknown> | undefined,
): void {
  const expected = { has, lacks }
  const mismatch = { what: `signals_${what}`, device_id: deviceId, expected, got: got ?? null }
  addMismatch(mismatches, mismatch)
}

function countSignals(found: SignalsByEvent): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const signals of found.values()) {
    for (const [name, value] of Object.entries(signals)) {
      if (value === true) counts[name] = (counts[name] ?? 0) + 1
    }
  }
  return counts
}

/** Event ids of one query. */
const idsPerQuery = 500

/** Reads the signals of events by the SQL of the console. */
export async function readServerSignals(
  context: FleetContext,
  tenantId: string,
  eventIds: readonly string[],
): Promise<SignalsByEvent> {
  const found: SignalsByEvent = new Map()
  for (let at = 0; at < eventIds.length; at += idsPerQuery) {
    const ids = eventIds.slice(at, at + idsPerQuery).map((id) => `'${id}'`)
    const sql = `
      SELECT event_id, toString(server_signals) AS signals
      FROM analytics.events WHERE event_id IN (${ids.join(', ')})`
    const path = `/tenants/${encodeURIComponent(tenantId)}/sql`
    const { rows } = (await context.adminFetch('POST', path, { sql })) as { rows: unknown[][] }
    for (const [eventId, signals] of rows) {
      const { attestation = {} } = JSON.parse(String(signals)) as {
        attestation?: Record<string, unknown>
      }
      found.set(String(eventId), attestation)
    }
  }
  return found
}
