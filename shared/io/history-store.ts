/**
 * Reads the history of a device: one key range of the sessions, joined anew each time, so that an
 * answer never depends on which merges have run. Whatever was inserted before the question is in
 * it. Nearly every device has few sessions: their rows are read as they are, by the plainest query
 * there is, since planning a query takes the engine longer than reading them. A device with many is
 * counted and paged inside the engine, and the next question about it begins there.
 */
import type { ClickHouseSettings } from '@clickhouse/client'
import {
  joinSessions,
  joinUsers,
  type RecentPage,
  type SessionHistory,
  type SessionPosition,
  type SessionRow,
  toRecentPage,
} from '#shared/core/device-history.ts'
import { cachedTenantsMax, heavyDevicesMax, heavyKeyMs } from '#shared/core/limits.ts'
import { type Clickhouse, smallQuery, uncompiled } from './clickhouse.ts'
import { createTenantCache, type TenantCache } from './tenant-cache.ts'

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
  const heavy = createTenantCache<true>({
    tenantsMax: cachedTenantsMax,
    entriesMax: heavyDevicesMax,
    ttlMs: heavyKeyMs,
  })
  return { findDevice: (question) => findDevice({ clickhouse, heavy }, question) }
}

/** Devices that had many rows are remembered: for those the first question is in vain. */
type Store = { clickhouse: Clickhouse; heavy: TenantCache<true> }

/** Devices with this many rows or more are counted by the engine: 1,000 rows are about 150 KB. */
const rowsAtOnce = 1_000

const ofDevice = 'from sessions where tenant_id = {tenant:String} and device_id = {device:String}'

const rowColumns = `session_id, toUnixTimestamp64Milli(started_at),
  toUnixTimestamp64Milli(last_seen_at), verdict.score, verdict.action, verdict.flags, users`

const firstRowsSql = `select ${rowColumns} ${ofDevice} limit ${rowsAtOnce}`
const firstRowsSettings = {
  ...smallQuery,
  // No larger than what is wanted: else many rows are read to show these.
  max_block_size: '1024',
  // The key says which rows: there is nothing to be found out by reading its columns first.
  optimize_move_to_prewhere: 0,
} as const

// All of these are what they are whether rows of a session are joined or not. Sessions are counted
// by 64 bits of a hash, in half the time that their ids take: that two of a million share
// one has a chance of 1,000,000^2 / 2^65, one in 37 million.
const totalsSql = `
  select toUnixTimestamp64Milli(min(started_at)), toUnixTimestamp64Milli(max(last_seen_at)),
    max(verdict.score), groupUniqArrayArray(users), uniqExact(session_hash)
  ${ofDevice}`

// Sorting rows takes less than half the time of joining all sessions to sort those. A session that
// shares its hash with one of the newest comes with it, whole, and is joined by its id.
const newestRowsSql = (before: boolean) => `
  select ${rowColumns} ${ofDevice} and session_hash in (
    select session_hash ${ofDevice}
      ${before ? "and started_at <= fromUnixTimestamp64Milli({started:Int64}, 'UTC')" : ''}
    order by started_at desc limit {newest:UInt32}
  )`

type Totals = [
  firstSeenAtMs: number,
  lastSeenAtMs: number,
  peakRaspScore: number,
  users: string[],
  sessionsTotal: number,
]

async function findDevice(
  { clickhouse, heavy }: Store,
  question: DeviceQuestion,
): Promise<DeviceHistory | null> {
  const { tenantId, deviceId } = question
  if (heavy.get(tenantId, deviceId)) return await findManySessions(clickhouse, question)
  const rows = await readRows<SessionRow>(
    clickhouse,
    firstRowsSql,
    toKey(question),
    firstRowsSettings,
  )
  if (rows.length === 0) return null
  if (rows.length >= rowsAtOnce) {
    heavy.set(tenantId, deviceId, true)
    return await findManySessions(clickhouse, question)
  }
  const sessions = joinSessions(rows)
  return toHistory(question, {
    totals: [
      sessions.at(-1)!.startedAtMs,
      sessions.reduce((last, one) => Math.max(last, one.lastSeenAtMs), 0),
      sessions.reduce((peak, one) => Math.max(peak, one.raspScore), 0),
      joinUsers(rows),
      sessions.length,
    ],
    page: toRecentPage(rows, { ...toPaging(question), newest: null })!,
  })
}

async function findManySessions(
  clickhouse: Clickhouse,
  question: DeviceQuestion,
): Promise<DeviceHistory | null> {
  const [[totals], page] = await Promise.all([
    readRows<Totals>(clickhouse, totalsSql, toKey(question)),
    findPage(clickhouse, question),
  ])
  // Erased meanwhile: nobody ever heard of it.
  if (totals === undefined || totals[4] === 0) return null
  return toHistory(question, { totals, page })
}

async function findPage(clickhouse: Clickhouse, question: DeviceQuestion): Promise<RecentPage> {
  const { before, sessionsLimit } = question
  // A quarter more than sessions: some have several rows that no merge has joined yet.
  for (let newest = Math.ceil(sessionsLimit * 1.25) + 64; ; newest *= 4) {
    const rows = await readRows<SessionRow>(clickhouse, newestRowsSql(before !== null), {
      ...toKey(question),
      newest,
      ...(before === null ? {} : { started: before.startedAtMs }),
    })
    const page = toRecentPage(rows, { ...toPaging(question), newest })
    if (page !== null) return page
  }
}

const toKey = ({ tenantId, deviceId }: DeviceQuestion) => ({ tenant: tenantId, device: deviceId })

const toPaging = ({ sessionsLimit, before }: DeviceQuestion) => ({ limit: sessionsLimit, before })

/** Waiting for a connection included, which are few when the engine hangs: a caller waits for it. */
const readMaxMs = 2_500

/** @throws when the engine fails, also in the middle of its answer, or takes too long */
async function readRows<Row>(
  clickhouse: Clickhouse,
  query: string,
  params: Record<string, string | number>,
  settings: ClickHouseSettings = uncompiled,
): Promise<Row[]> {
  const result = await clickhouse.query({
    query,
    query_params: params,
    clickhouse_settings: settings,
    format: 'JSONCompactEachRow',
    abort_signal: AbortSignal.timeout(readMaxMs),
  })
  // One parse for all rows: a line feed inside a value is escaped.
  const text = (await result.text()).trimEnd().replaceAll('\n', ',')
  try {
    return JSON.parse(`[${text}]`) as Row[]
  } catch {
    // The parser's message would quote the data.
    throw new Error('ClickHouse broke off its answer')
  }
}

function toHistory(
  { deviceId }: DeviceQuestion,
  { totals, page }: { totals: Totals; page: RecentPage },
): DeviceHistory {
  const [firstSeenAtMs, lastSeenAtMs, peakRaspScore, users, sessionsTotal] = totals
  const last = page.more ? page.sessions.at(-1) : undefined
  return {
    deviceId,
    firstSeenAtMs,
    lastSeenAtMs,
    peakRaspScore,
    users: users.sort(),
    sessions: page.sessions,
    sessionsTotal,
    next: last === undefined ? null : { startedAtMs: last.startedAtMs, sessionId: last.sessionId },
  }
}
