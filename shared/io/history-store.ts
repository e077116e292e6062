/**
 * Reads the history of a device: two key ranges in one query, aggregated anew each time, so that an
 * answer never depends on which merges have run. Whatever was inserted before the question is in
 * it.
 */
import type { Action } from '#shared/core/scoring.ts'
import type { Clickhouse } from './clickhouse.ts'

export type SessionPosition = { startedAtMs: number; sessionId: string }

export type SessionHistory = {
  sessionId: string
  /** The action and flags are those of the session's highest score. */
  raspAction: Action
  raspScore: number
  flags: string[]
  startedAtMs: number
  lastSeenAtMs: number
}

export type DeviceHistory = {
  deviceId: string
  firstSeenAtMs: number
  lastSeenAtMs: number
  peakRaspScore: number
  /** Every user and account, sorted. */
  users: string[]
  /** Most recent first: by start, then id, both descending. */
  sessions: SessionHistory[]
  /** All of them, whatever is asked for. */
  sessionsTotal: number
  /** Where older sessions continue, or null when these are the last. */
  next: SessionPosition | null
}

export type DeviceQuestion = {
  tenantId: string
  deviceId: string
  sessionsLimit: number
  /** Only sessions older than this one. */
  before: SessionPosition | null
}

export type HistoryStore = {
  /** @returns null when the tenant has never sent anything of this device */
  findDevice: (question: DeviceQuestion) => Promise<DeviceHistory | null>
}

export function createHistoryStore(clickhouse: Clickhouse): HistoryStore {
  return { findDevice: (question) => findDevice(clickhouse, question) }
}

const isOlder = '(started, session_id) < ({started:Int64}, {session:String})'

// A session's row is (id, started, last seen, score, action, flags).
const historySql = (before: boolean) => `
  select
    min(started), max(last_seen), max(verdict.score), groupUniqArrayArray(users), count(),
    arraySlice(
      arrayReverseSort(
        session -> (session.2, session.1),
        groupArray${before ? 'If' : ''}(
          (session_id, started, last_seen, verdict.score, verdict.action, verdict.flags)
          ${before ? `, ${isOlder}` : ''}
        )
      ),
      1, {limit:UInt32}
    )
  from (
    select
      session_id,
      toUnixTimestamp64Milli(min(started_at)) as started,
      toUnixTimestamp64Milli(max(last_seen_at)) as last_seen,
      max(verdict) as verdict,
      groupUniqArrayArray(users) as users
    from sessions
    where tenant_id = {tenant:String} and device_id = {device:String}
    group by session_id
  )`

type SessionRow = [
  sessionId: string,
  startedAtMs: number,
  lastSeenAtMs: number,
  score: number,
  action: Action,
  flags: string[],
]

type Row = [
  firstSeenAtMs: number,
  lastSeenAtMs: number,
  peak: number,
  users: string[],
  total: number,
  sessions: SessionRow[],
]

async function findDevice(
  clickhouse: Clickhouse,
  question: DeviceQuestion,
): Promise<DeviceHistory | null> {
  const { deviceId, sessionsLimit, before } = question
  const result = await clickhouse.query({
    query: historySql(before !== null),
    query_params: {
      tenant: question.tenantId,
      device: deviceId,
      // One more than asked for tells whether there are older ones.
      limit: sessionsLimit + 1,
      ...(before === null ? {} : { started: before.startedAtMs, session: before.sessionId }),
    },
    format: 'JSONCompactEachRow',
  })
  const [row] = await result.json<Row>()
  if (row === undefined || row[4] === 0) return null
  const [firstSeenAtMs, lastSeenAtMs, peakRaspScore, users, sessionsTotal, found] = row
  const sessions = found.slice(0, sessionsLimit).map(toSession)
  const last = sessions.at(-1)
  const next = found.length > sessionsLimit ? last : undefined
  return {
    deviceId,
    firstSeenAtMs,
    lastSeenAtMs,
    peakRaspScore,
    users: users.sort(),
    sessions,
    sessionsTotal,
    next: next === undefined ? null : { startedAtMs: next.startedAtMs, sessionId: next.sessionId },
  }
}

function toSession(row: SessionRow): SessionHistory {
  return {
    sessionId: row[0],
    raspAction: row[4],
    raspScore: row[3],
    flags: row[5],
    startedAtMs: row[1],
    lastSeenAtMs: row[2],
  }
}
