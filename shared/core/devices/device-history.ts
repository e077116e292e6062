/**
 * What the rows of a device's sessions say together. A session may have several rows, since merges
 * need not have happened: they are joined here exactly as the engine joins them, by minimum,
 * maximum and union, so that an answer never depends on which merges have run.
 */
import { compareBytes } from '#shared/core/base/byte-order.ts'
import { type Action, actions } from '#shared/core/scoring/score.ts'

/** One row of a session, which may be all of it or a part. */
export type SessionRow = [
  sessionId: string,
  startedAtMs: number,
  lastSeenAtMs: number,
  score: number,
  action: Action,
  flags: string[],
  users: string[],
]

export type SessionHistory = {
  sessionId: string
  /** The action and flags are those of the session's highest score. */
  raspAction: Action
  raspScore: number
  flags: string[]
  startedAtMs: number
  lastSeenAtMs: number
}

export type SessionPosition = { startedAtMs: number; sessionId: string }

/** Joins the rows of each session; most recent first: by start, then id, both descending. */
export function joinSessions(rows: readonly SessionRow[]): SessionHistory[] {
  const sessions = new Map<string, SessionHistory>()
  for (const [sessionId, startedAtMs, lastSeenAtMs, raspScore, raspAction, flags] of rows) {
    const known = sessions.get(sessionId)
    if (known === undefined) {
      const session = { sessionId, raspAction, raspScore, flags, startedAtMs, lastSeenAtMs }
      sessions.set(sessionId, session)
      continue
    }
    known.startedAtMs = Math.min(known.startedAtMs, startedAtMs)
    known.lastSeenAtMs = Math.max(known.lastSeenAtMs, lastSeenAtMs)
    if (compareVerdicts({ raspScore, raspAction, flags }, known) > 0) {
      Object.assign(known, { raspScore, raspAction, flags })
    }
  }
  return [...sessions.values()].sort(compareRecent)
}

/** Every user of the rows once, by their bytes: the order in which users are shown and paged. */
export function joinUsers(rows: readonly SessionRow[]): string[] {
  const users = new Set<string>()
  for (const row of rows) for (const user of row[6]) users.add(user)
  return [...users].sort(compareBytes)
}

export type UsersPage = {
  users: string[]
  /** The user after which the next page continues, or null when this is the last. */
  next: string | null
}

/**
 * A page of users.
 * @param sorted all users after the page before, or the first of them, at least one beyond the page
 */
export function toUsersPage(sorted: readonly string[], limit: number): UsersPage {
  const users = sorted.slice(0, limit)
  return { users, next: sorted.length > limit ? users.at(-1)! : null }
}

/** Below 0 when the first is the more recent; the order in which sessions are shown. */
export function compareRecent(a: SessionPosition, b: SessionPosition): number {
  return b.startedAtMs - a.startedAtMs || compareBytes(b.sessionId, a.sessionId)
}

type Verdict = Pick<SessionHistory, 'raspScore' | 'raspAction' | 'flags'>

/** By score, then action, then flags: the order of the engine's tuples, which is total. */
function compareVerdicts(a: Verdict, b: Verdict): number {
  if (a.raspScore !== b.raspScore) return a.raspScore - b.raspScore
  if (a.raspAction !== b.raspAction) {
    return actions.indexOf(a.raspAction) - actions.indexOf(b.raspAction)
  }
  for (let n = 0; n < Math.min(a.flags.length, b.flags.length); n++) {
    const order = compareBytes(a.flags[n]!, b.flags[n]!)
    if (order !== 0) return order
  }
  return a.flags.length - b.flags.length
}

export type RecentPage = {
  sessions: SessionHistory[]
  /** Whether there are older ones. */
  more: boolean
}

/**
 * The most recent sessions among rows, older than a position.
 * @param rows all of the device, or only those of every session that has one of the `newest` rows
 * that began last
 * @param newest how many were asked for; null when the rows are all there are
 * @returns null when the rows do not suffice to know the page
 */
export function toRecentPage(
  rows: readonly SessionRow[],
  {
    limit,
    before,
    newest,
  }: { limit: number; before: SessionPosition | null; newest: number | null },
): RecentPage | null {
  const found = joinSessions(rows)
  const first = before === null ? 0 : found.findIndex((one) => compareRecent(before, one) < 0)
  const older = first === -1 ? [] : found.slice(first, first + limit + 1)
  const horizonMs = newest === null ? null : toHorizon(rows, newest, before)
  // Below the horizon there may be sessions of which no row was read.
  const known = horizonMs === null ? older : older.filter((one) => one.startedAtMs > horizonMs)
  if (horizonMs !== null && known.length <= limit) return null
  return { sessions: known.slice(0, limit), more: known.length > limit }
}

/** When the oldest of the newest rows began; null when there are fewer, and all were read. */
function toHorizon(
  rows: readonly SessionRow[],
  newest: number,
  before: SessionPosition | null,
): number | null {
  const starts = rows.map((row) => row[1])
  const counted = before === null ? starts : starts.filter((ms) => ms <= before.startedAtMs)
  if (counted.length < newest) return null
  return counted.sort((a, b) => b - a)[newest - 1]!
}
