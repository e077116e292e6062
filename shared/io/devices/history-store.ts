/**
 * Reads the history of a device: one key range of `sessions`. Rows are merged at each read, so a
 * result does not depend on ClickHouse's merges and has everything inserted before the query. Most
 * devices have few sessions: a simple query reads their rows, because planning costs more than
 * reading. A device with many sessions is counted and paged by ClickHouse.
 */
import type { ClickHouseSettings } from '@clickhouse/client'
import { compareBytes } from '#shared/core/base/byte-order.ts'
import { hotDevicesMax, hotKeyMs } from '#shared/core/base/limits/history.ts'
import { usersPageMax } from '#shared/core/base/limits/rest-api.ts'
import { cachedTenantsMax } from '#shared/core/base/limits/tenants.ts'
import {
  type DeviceHistory,
  findLatestClient,
  findLatestConnection,
  joinSessions,
  joinUsers,
  type LatestConnection,
  type RecentPage,
  type SessionPosition,
  type SessionRow,
  toClient,
  toLatestConnection,
  toRecentPage,
  toRisk,
  toUsersPage,
  type UsersPage,
} from '#shared/core/devices/device-history.ts'
import {
  type Clickhouse,
  type ClickhouseNode,
  smallQuery,
  uncompiled,
} from '#shared/io/clickhouse/clickhouse.ts'
import { readRowsInPieces } from '#shared/io/clickhouse/clickhouse-rows.ts'
import { nodeOfDevice } from '#shared/io/clickhouse/shards.ts'
import {
  type InstallTuple,
  latestInstallSql,
  toDeviceInstall,
} from '#shared/io/installs/install-sql.ts'
import { createTenantCache } from '#shared/io/process/tenant-cache.ts'
import { toConnectionSql } from './latest-connection-sql.ts'

export type DeviceQuery = {
  tenantId: string
  deviceId: string
  sessionsLimit: number
  /** Only sessions older than this one. */
  before: SessionPosition | null
  /** Only users after this one. */
  usersAfter?: string | null
}

export type HistoryStore = {
  /** @returns null when the tenant has never sent anything of this device */
  findDevice: (query: DeviceQuery) => Promise<DeviceHistory | null>
  /**
   * The same of a device with few rows, at little cost.
   * @returns `large` when the device has many: `findLargeDevice` reads it
   */
  findSmallDevice: (query: DeviceQuery) => Promise<DeviceHistory | 'large' | null>
  /**
   * The same of any device. One query runs at a time, and rows are parsed in pieces, so that other
   * requests are served meanwhile.
   */
  findLargeDevice: (query: DeviceQuery) => Promise<DeviceHistory | null>
}

export function createHistoryStore(clickhouse: Clickhouse): HistoryStore {
  // Devices that had many rows: for those the small query is in vain.
  const large = createTenantCache<true>({
    tenantsMax: cachedTenantsMax,
    entriesMax: hotDevicesMax,
    ttlMs: hotKeyMs,
  })
  const findSmallDevice: HistoryStore['findSmallDevice'] = async (query) => {
    const { tenantId, deviceId } = query
    if (large.get(tenantId, deviceId)) return 'large'
    const found = await findFewSessions(nodeOfDevice(clickhouse, deviceId), query)
    if (found === 'large') large.set(tenantId, deviceId, true)
    return found
  }
  const findLargeDevice: HistoryStore['findLargeDevice'] = (query) =>
    findManySessions(nodeOfDevice(clickhouse, query.deviceId), query)
  return {
    findSmallDevice,
    findLargeDevice,
    findDevice: async (query) => {
      const found = await findSmallDevice(query)
      return found === 'large' ? await findLargeDevice(query) : found
    },
  }
}

/** Devices with this many rows or more are counted by the engine: 1,000 rows are about 150 KB. */
const rowsAtOnce = 1_000

const ofDevice = 'from sessions where tenant_id = {tenant:String} and device_id = {device:String}'

/** Users of one row that are read with it. A session has one or two; one with more is large. */
const usersAtOnce = 16

const sessionColumns = `session_id, toUnixTimestamp64Milli(started_at),
  toUnixTimestamp64Milli(last_seen_at), verdict.score, verdict.action, verdict.flags, risk.rank,
  risk.flags, client`

const firstRowsSql = `
  select ${sessionColumns}, arraySlice(users, 1, ${usersAtOnce}), ${toConnectionSql('connection')},
    length(users),
    ${latestInstallSql} ${ofDevice}
  limit ${rowsAtOnce}`
type FirstRow = [...SessionRow, usersCount: number, install: InstallTuple]

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
    max(verdict.score), max(risk.rank), uniqExact(session_hash),
    argMaxIf(client, (sessions.last_seen_at, client), notEmpty(client)), ${latestInstallSql},
    ${toConnectionSql('max(connection)')}
  ${ofDevice}`

// Sorting rows takes less than half the time of joining all sessions to sort those. A session that
// shares its hash with one of the newest comes with it, whole, and is joined by its id.
const newestRowsSql = (before: boolean) => `
  select ${sessionColumns}, [], ${toConnectionSql('connection')} ${ofDevice} and session_hash in (
    select session_hash ${ofDevice}
      ${before ? "and started_at <= fromUnixTimestamp64Milli({started:Int64}, 'UTC')" : ''}
    order by started_at desc limit {newest:UInt32}
  )`

const usersSql = `
  select user from (select arrayJoin(users) as user ${ofDevice})
  where user > {after:String} group by user order by user limit ${usersPageMax + 1}`

type Totals = [
  firstSeenAtMs: number,
  lastSeenAtMs: number,
  peakRaspScore: number,
  peakRank: number,
  sessionsTotal: number,
  client: string[],
  install: InstallTuple,
  connection: LatestConnection,
]

async function findFewSessions(
  clickhouse: ClickhouseNode,
  query: DeviceQuery,
): Promise<DeviceHistory | 'large' | null> {
  const rows = await readRows<FirstRow>(clickhouse, firstRowsSql, toKey(query), firstRowsSettings)
  if (rows.length === 0) return null
  if (rows.length >= rowsAtOnce || rows.some((row) => row[11] > usersAtOnce)) return 'large'
  const sessionRows = rows as unknown as SessionRow[]
  const sessions = joinSessions(sessionRows)
  const after = query.usersAfter ?? null
  const users = joinUsers(sessionRows).filter(
    (user) => after === null || compareBytes(user, after) > 0,
  )
  return toHistory(query, {
    totals: [
      sessions.at(-1)!.startedAtMs,
      sessions.reduce((last, one) => Math.max(last, one.lastSeenAtMs), 0),
      sessions.reduce((peak, one) => Math.max(peak, one.raspScore), 0),
      rows.reduce((peak, row) => Math.max(peak, row[6]), 0),
      sessions.length,
      findLatestClient(sessionRows),
      rows[0]![12],
      findLatestConnection(sessionRows),
    ],
    users: toUsersPage(users, usersPageMax),
    page: toRecentPage(sessionRows, { ...toPaging(query), newest: null })!,
  })
}

async function findManySessions(
  clickhouse: ClickhouseNode,
  query: DeviceQuery,
): Promise<DeviceHistory | null> {
  const [totals] = await readRows<Totals>(clickhouse, totalsSql, toKey(query))
  // Erased meanwhile: the device is unknown.
  if (totals === undefined || totals[4] === 0) return null
  const page = await findPage(clickhouse, query)
  const users = await readRows<[user: string]>(clickhouse, usersSql, {
    ...toKey(query),
    after: query.usersAfter ?? '',
  })
  return toHistory(query, {
    totals,
    page,
    users: toUsersPage(
      users.map(([user]) => user),
      usersPageMax,
    ),
  })
}

async function findPage(clickhouse: ClickhouseNode, query: DeviceQuery): Promise<RecentPage> {
  const { before, sessionsLimit } = query
  // A quarter more than sessions: some have several rows that no merge has joined yet.
  for (let newest = Math.ceil(sessionsLimit * 1.25) + 64; ; newest *= 4) {
    const rows = await readRows<SessionRow>(clickhouse, newestRowsSql(before !== null), {
      ...toKey(query),
      newest,
      ...(before === null ? {} : { started: before.startedAtMs }),
    })
    const page = toRecentPage(rows, { ...toPaging(query), newest })
    if (page !== null) return page
  }
}

const toKey = ({ tenantId, deviceId }: DeviceQuery) => ({ tenant: tenantId, device: deviceId })

const toPaging = ({ sessionsLimit, before }: DeviceQuery) => ({ limit: sessionsLimit, before })

/**
 * Waiting for a connection included, which are few when the engine hangs: a caller waits for it.
 */
const readMaxMs = 2_500

async function readRows<Row>(
  clickhouse: ClickhouseNode,
  query: string,
  params: Record<string, string | number>,
  settings: ClickHouseSettings = uncompiled,
): Promise<Row[]> {
  const rows: Row[] = []
  const pieces = readRowsInPieces<Row>(clickhouse, {
    query,
    query_params: params,
    clickhouse_settings: settings,
    abort_signal: AbortSignal.timeout(readMaxMs),
  })
  for await (const piece of pieces) rows.push(...piece)
  return rows
}

function toHistory(
  { deviceId }: DeviceQuery,
  { totals, users, page }: { totals: Totals; users: UsersPage; page: RecentPage },
): DeviceHistory {
  const [firstSeenAtMs, lastSeenAtMs, peakRaspScore, peakRank, sessionsTotal, ...latest] = totals
  const [client, install, connection] = latest
  const last = page.more ? page.sessions.at(-1) : undefined
  return {
    deviceId,
    firstSeenAtMs,
    lastSeenAtMs,
    peakRaspScore,
    peakRiskScore: toRisk(peakRank).riskScore,
    install: toDeviceInstall(install),
    client: toClient(client),
    connection: toLatestConnection(connection),
    users: users.users,
    nextUser: users.next,
    sessions: page.sessions,
    sessionsTotal,
    next: last === undefined ? null : { startedAtMs: last.startedAtMs, sessionId: last.sessionId },
  }
}
