/**
 * Which sessions a label covers, and what a session turned out to be. `coverage-sql.ts` says the
 * same as SQL, and a test holds the two equal. Every figure takes one of the two.
 *
 * A label of an event covers its session; of a session, itself; of a device or a user, the sessions
 * that began up to `coveredDays` before `occurredAtMs`, and not those after. A disposition CONFIRMED
 * or FALSE_POSITIVE covers the alert's session.
 */
import { dayMs } from '#shared/core/base/instants.ts'
import { type Label, type Outcome, toOutcome } from './labels.ts'

/** A session, and what of it labels can name. */
export type CoverableSession = {
  deviceId: string
  sessionId: string
  /** Users and accounts. */
  users: readonly string[]
  eventIds: readonly string[]
  startedAtMs: number
}

/**
 * What a session must have to be covered. `near`: it was named itself, so it comes before what was
 * said of a device or user.
 */
export type Coverage = {
  by: 'event_id' | 'session_id' | 'device_id' | 'user_id'
  id: string
  near: boolean
  /** It must have begun after this and not after `toMs`; null for any time. */
  afterMs: number | null
  toMs: number | null
}

/** Which sessions a label covers. */
export function toCoverage(
  label: Pick<Label, 'subject' | 'occurredAtMs' | 'coveredDays'>,
): Coverage {
  const { kind, id } = label.subject
  const by = `${kind}_id` as const
  if (kind === 'event' || kind === 'session') {
    return { by, id, near: true, afterMs: null, toMs: null }
  }
  const toMs = label.occurredAtMs
  return { by, id, near: false, afterMs: toMs - label.coveredDays * dayMs, toMs }
}

/** Whether a session is covered. */
export function isCovered(session: CoverableSession, coverage: Coverage): boolean {
  const { by, id, afterMs, toMs } = coverage
  const named = {
    event_id: session.eventIds,
    session_id: [session.sessionId],
    device_id: [session.deviceId],
    user_id: session.users,
  }[by]
  return (
    named.includes(id) &&
    (afterMs === null || session.startedAtMs > afterMs) &&
    (toMs === null || session.startedAtMs <= toMs)
  )
}

/**
 * What labels make of a session that they cover: what was said of itself comes before what was said
 * of its device or user, and fraud before legitimate.
 */
export const outcomeRanks = {
  near: { fraud: 4, legitimate: 3 },
  wide: { fraud: 2, legitimate: 1 },
} as const

/**
 * What a session turned out to be.
 * @param labels those that count
 * @param disposition of the session's alerts, any of which was judged
 * @returns null when nothing is known of it
 */
export function toSessionOutcome(
  session: CoverableSession,
  labels: readonly Label[],
  dispositions: readonly Outcome[] = [],
): Outcome | null {
  const ranks: number[] = dispositions.map((outcome) => outcomeRanks.near[outcome])
  for (const label of labels) {
    const coverage = toCoverage(label)
    const outcome = toOutcome(label.label, label.codeMeans)
    if (outcome === null || !isCovered(session, coverage)) continue
    ranks.push(outcomeRanks[coverage.near ? 'near' : 'wide'][outcome])
  }
  const rank = Math.max(0, ...ranks)
  if (rank === 0) return null
  return rank % 2 === 0 ? 'fraud' : 'legitimate'
}
