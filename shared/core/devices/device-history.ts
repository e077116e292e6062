/**
 * Joins the rows of a device's sessions. A session has several rows until ClickHouse merges them.
 * They are joined here exactly as the engine does, by minimum, maximum and union, so an answer does
 * not depend on which merges have run.
 */
import { compareBytes } from '#shared/core/base/byte-order.ts'
import { type Action, actions } from '#shared/core/scoring/score.ts'

/** One row of a session; several rows can make up a session. */
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

export type DeviceHistory = {
  deviceId: string
  firstSeenAtMs: number
  lastSeenAtMs: number
  peakRaspScore: number
  /** Users and accounts, sorted by their bytes. */
  users: string[]
  /** The user after which the next ones continue, or null when these are the last. */
  nextUser: string | null
  /** Most recent first: by start, then id, both descending. */
  sessions: SessionHistory[]
  /** The number of all sessions, whatever the page. */
  sessionsTotal: number
  /** Where older sessions continue, or null when these are the last. */
  next: SessionPosition | null
}

/** Joins the rows of each session. The most recent is first: by start, then id, both descending. */
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

/** The distinct users of the rows in byte order, in which users are shown and paged. */
export function joinUsers(rows: readonly SessionRow[]): string[] {
  const users = new Set<string>()
  for (const row of rows) for (const user of row[6]) users.add(user)
  return [...users].sort(compareBytes)
}

export type UsersPage = {
  users: string[]
  /** The last user, after which the next page continues; null on the last page. */
  next: string | null
}

/**
 * A page of users.
 * @param sorted users after the previous page, at least one more than the page if there are more
 */
export function toUsersPage(sorted: readonly string[], limit: number): UsersPage {
  const users = sorted.slice(0, limit)
  return { users, next: sorted.length > limit ? users.at(-1)! : null }
}

/** Orders sessions by recency: negative when the first is the more recent. */
export function compareRecent(a: SessionPosition, b: SessionPosition): number {
  return b.startedAtMs - a.startedAtMs || compareBytes(b.sessionId, a.sessionId)
}

type Verdict = Pick<SessionHistory, 'raspScore' | 'raspAction' | 'flags'>

/** By score, then action, then flags: the total order of the engine's tuples. */
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
  /** Whether there are older sessions. */
  more: boolean
}

/**
 * A page of the most recent sessions before a position.
 * @param rows all rows of the device; or all rows of those sessions that have one of the `newest`
 * most recent rows
 * @param newest how many recent rows were queried; null when the rows are complete
 * @returns null when the rows do not suffice for the page
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
  // Sessions from the horizon on back may be missing, because none of their rows was read.
  const known = horizonMs === null ? older : older.filter((one) => one.startedAtMs > horizonMs)
  if (horizonMs !== null && known.length <= limit) return null
  return { sessions: known.slice(0, limit), more: known.length > limit }
}

/** The start of the oldest of the newest rows; null when all rows were read. */
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
