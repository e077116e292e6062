/**
 * Joins the rows of a device's sessions. A session has several rows until ClickHouse merges them.
 * They are joined here exactly as the engine does, by minimum, maximum and union, so an answer does
 * not depend on which merges have run.
 */
import { compareBytes } from '#shared/core/base/byte-order.ts'
import type { Registration } from '#shared/core/installs/registration.ts'
import type { Connection } from '#shared/core/network/connection-answer.ts'
import { toConnection } from '#shared/core/network/connection-columns.ts'
import { type Action, actions } from '#shared/core/scoring/score.ts'

/** One row of a session; several rows can make up a session. */
export type SessionRow = [
  sessionId: string,
  startedAtMs: number,
  lastSeenAtMs: number,
  score: number,
  action: Action,
  flags: string[],
  /** See `toRisk`. */
  riskRank: number,
  riskFlags: string[],
  /** Platform, SDK version, app version and phone model; empty of rows of earlier releases. */
  client: string[],
  users: string[],
  connection: LatestConnection,
]

/** Of the latest event with a measured connection; every member is empty when there is none. */
export type LatestConnection = [
  receivedAtMs: number | string,
  network: string,
  country: string,
  asn: number,
  organization: string,
  kinds: string[],
]

export type SessionHistory = {
  sessionId: string
  /** The action and flags are those of the session's highest score. */
  raspAction: Action
  raspScore: number
  flags: string[]
  /** The highest risk of its events, with its action and the codes of its reasons. */
  riskScore: number
  action: Action
  riskFlags: string[]
  /** What the app said of itself; each is empty when it said nothing. */
  platform: string
  sdkVersion: string
  appVersion: string
  deviceModel: string
  /** Of its latest event that has one; null when none has. */
  connection: Connection | null
  startedAtMs: number
  lastSeenAtMs: number
}

/** A registration of the app on a device. */
export type DeviceInstall = Pick<Registration, 'provider' | 'verdict' | 'level'> & {
  registeredAtMs: number
  expiresAtMs: number
}

export type SessionPosition = { startedAtMs: number; sessionId: string }

export type DeviceHistory = {
  deviceId: string
  firstSeenAtMs: number
  lastSeenAtMs: number
  peakRaspScore: number
  peakRiskScore: number
  /** The latest registration of the app on it; null when there is none. */
  install: DeviceInstall | null
  /** Of the session that was seen last. */
  client: Pick<SessionHistory, 'platform' | 'sdkVersion' | 'appVersion' | 'deviceModel'>
  /** Of its latest event that has one; null when none has. */
  connection: Connection | null
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

/**
 * The rank of a risk in `sessions`: its score, then its action, then whether it is a row of
 * `decisions`. The highest one of a session is kept.
 */
export const toRank = (score: number, action: Action, isStored: boolean): number =>
  8 * score + 2 * actions.indexOf(action) + (isStored ? 1 : 0)

/** The score and the action in a rank. */
export const toRisk = (rank: number): { riskScore: number; action: Action } => ({
  riskScore: rank >> 3,
  action: actions[(rank >> 1) & 3] ?? 'ALLOW',
})

/** The members of a session that hold the facts of the app. */
export const toClient = (client: readonly string[]) => {
  const [platform = '', sdkVersion = '', appVersion = '', deviceModel = ''] = client
  return { platform, sdkVersion, appVersion, deviceModel }
}

/** What is compared before it is turned into the members of a session. */
type Joined = {
  verdict: Verdict
  risk: { rank: number; flags: readonly string[] }
  client: readonly string[]
  connection: LatestConnection
  startedAtMs: number
  lastSeenAtMs: number
}

/** Joins the rows of each session. The most recent is first: by start, then id, both descending. */
export function joinSessions(rows: readonly SessionRow[]): SessionHistory[] {
  const sessions = new Map<string, Joined>()
  for (const row of rows) {
    const [sessionId, startedAtMs, lastSeenAtMs, raspScore, raspAction, flags] = row
    const [, , , , , , rank, riskFlags, client, , connection] = row
    const verdict = { raspScore, raspAction, flags }
    const risk = { rank, flags: riskFlags }
    const known = sessions.get(sessionId)
    if (known === undefined) {
      sessions.set(sessionId, { verdict, risk, client, connection, startedAtMs, lastSeenAtMs })
      continue
    }
    known.startedAtMs = Math.min(known.startedAtMs, startedAtMs)
    known.lastSeenAtMs = Math.max(known.lastSeenAtMs, lastSeenAtMs)
    if (compareVerdicts(verdict, known.verdict) > 0) known.verdict = verdict
    if (compareRisks(risk, known.risk) > 0) known.risk = risk
    if (compareTexts(client, known.client) > 0) known.client = client
    if (compareConnections(connection, known.connection) > 0) known.connection = connection
  }
  return [...sessions]
    .map(([sessionId, joined]) => toSession(sessionId, joined))
    .sort(compareRecent)
}

function toSession(sessionId: string, joined: Joined): SessionHistory {
  const { verdict, risk, client, connection, ...times } = joined
  return {
    sessionId,
    ...verdict,
    ...toRisk(risk.rank),
    riskFlags: [...risk.flags],
    ...toClient(client),
    connection: toLatestConnection(connection),
    ...times,
  }
}

/** What the app said of itself in the row that was seen last; empty when no row says anything. */
export function findLatestClient(rows: readonly SessionRow[]): string[] {
  let latest: SessionRow | undefined
  for (const row of rows) {
    if (row[8].length === 0) continue
    const order = latest === undefined ? 1 : row[2] - latest[2] || compareTexts(row[8], latest[8])
    if (order > 0) latest = row
  }
  return latest?.[8] ?? []
}

/** The latest connection of all rows. @param rows at least one */
export const findLatestConnection = (rows: readonly SessionRow[]): LatestConnection =>
  rows
    .map((row) => row[10])
    .reduce((latest, one) => (compareConnections(one, latest) > 0 ? one : latest))

/** @returns null when no event has one */
export const toLatestConnection = (latest: LatestConnection): Connection | null =>
  toConnection({
    connection_network: latest[1],
    connection_country: latest[2],
    connection_asn: latest[3],
    connection_organization: latest[4],
    connection_kinds: latest[5],
  })

/** The distinct users of the rows in byte order, in which users are shown and paged. */
export function joinUsers(rows: readonly SessionRow[]): string[] {
  const users = new Set<string>()
  for (const row of rows) for (const user of row[9]) users.add(user)
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
  return compareTexts(a.flags, b.flags)
}

const compareRisks = (a: Joined['risk'], b: Joined['risk']): number =>
  a.rank - b.rank || compareTexts(a.flags, b.flags)

/** The order of the engine's tuples: the later one is the greater. */
const compareConnections = (a: LatestConnection, b: LatestConnection): number =>
  Number(a[0]) - Number(b[0]) ||
  compareBytes(a[1], b[1]) ||
  compareBytes(a[2], b[2]) ||
  a[3] - b[3] ||
  compareBytes(a[4], b[4]) ||
  compareTexts(a[5], b[5])

/** The order of the engine's arrays. */
function compareTexts(a: readonly string[], b: readonly string[]): number {
  for (let n = 0; n < Math.min(a.length, b.length); n++) {
    const order = compareBytes(a[n]!, b[n]!)
    if (order !== 0) return order
  }
  return a.length - b.length
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
