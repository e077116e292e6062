/**
 * Links between devices and users, and the sessions of a user: what an investigation reads beside a
 * history. Placeholder ids such as "unknown" link nothing. Every query is a few key ranges, or
 * narrow columns of one tenant, and has limits of rows and time.
 */
import {
  linkPairsMax,
  linkSessionsMax,
  linkSourcesMax,
  sessionUsersShownMax,
} from '#shared/core/base/limits/entities.ts'
import {
  type LatestConnection,
  type SessionHistory,
  toClient,
  toLatestConnection,
  toRisk,
} from '#shared/core/devices/device-history.ts'
import type { SharedPair } from '#shared/core/devices/links.ts'
import type { Action } from '#shared/core/scoring/score.ts'
import { isPlaceholderId } from '#shared/core/telemetry/placeholder-ids.ts'
import {
  type Clickhouse,
  isTimeout,
  isTooMuchToRead,
  uncompiled,
} from '#shared/io/clickhouse/clickhouse.ts'
import { toConnectionSql } from './latest-connection-sql.ts'

/** What others share with a device or a user, and whether all of it was read. */
export type Links = {
  /** Others by what they share: users of a device, devices of a user. */
  pairs: SharedPair[]
  /** Other devices by the session that they share. */
  sessionPairs: SharedPair[]
  /** Users, or devices, from which links were followed, of how many there are. */
  followed: number
  followedOf: number
  /** Whether `pairs` has all of them, or the latest. */
  complete: boolean
  /** Whether other devices were searched for all sessions: a large tenant may have too many. */
  sessionsSearched: boolean
}

export type UserSession = SessionHistory & { deviceId: string }

/** What has an id that begins with a text. */
export type Found = { kind: 'device' | 'user' | 'session' | 'phone'; tenantId: string; id: string }

export type SessionUsers = { users: string[]; total: number }

export type LinkStore = {
  /** Other devices that share a user or a session with a device. */
  findLinkedDevices: (key: { tenantId: string; deviceId: string }) => Promise<Links>
  /** Other users that share a device with a user. */
  findLinkedUsers: (key: { tenantId: string; userId: string }) => Promise<Links>
  /** Sessions of a user on some devices, most recent first. */
  listUserSessions: (query: {
    tenantId: string
    userId: string
    deviceIds: readonly string[]
    limit: number
  }) => Promise<UserSession[]>
  /**
   * The users and accounts that some sessions of a device named, by session: the first of them in
   * the order of their bytes, and how many there are. A session without any has no entry.
   */
  findSessionUsers: (query: {
    tenantId: string
    deviceId: string
    sessionIds: readonly string[]
  }) => Promise<Map<string, SessionUsers>>
  /** Devices, users and phones by the beginning of their id, sessions by the whole of it. */
  findByText: (query: {
    tenantIds: readonly string[]
    text: string
    limit: number
  }) => Promise<Found[]>
}

const inTenant = 'tenant_id = {tenant:String}'

// A pair is a key of `user_devices`, so whether it is a placeholder is found without reading the
// other devices of a user such as "unknown".
const usersOfDeviceSql = `
  select user_id from user_devices
  where ${inTenant} and device_id = {id:String} and user_id in (
    select arrayJoin(users) from devices where ${inTenant} and device_id = {id:String}
  )
  group by user_id having max(is_placeholder) = 0`

const devicesOfUserSql = `
  select device_id from user_devices where ${inTenant} and user_id = {id:String}
  group by device_id having max(is_placeholder) = 0`

const latest = `order by max(user_devices.last_seen_at) desc limit ${linkSourcesMax}`

const pairs = (shared: 'user_id' | 'device_id', other: 'user_id' | 'device_id') => `
  select ${other}, ${shared}, toUnixTimestamp64Milli(max(user_devices.last_seen_at)) as last
  from user_devices`
const joined = `
  group by user_id, device_id having max(is_placeholder) = 0
  order by last desc, user_id, device_id limit ${linkPairsMax + 1}`

const linkedDevicesSql = `${pairs('user_id', 'device_id')}
  where ${inTenant} and user_id in (${usersOfDeviceSql} ${latest}) and device_id != {id:String}
  ${joined}`

const linkedUsersSql = `
  with own as (${devicesOfUserSql} ${latest})
  ${pairs('device_id', 'user_id')}
  where ${inTenant} and device_id in (own) and user_id != {id:String} and user_id in (
    select arrayJoin(users) from devices where ${inTenant} and device_id in (own)
  )
  ${joined}`

const sessionsOfDeviceSql = `
  select session_id, toString(any(session_hash)) from sessions
  where ${inTenant} and device_id = {id:String}
  group by session_id order by min(started_at) desc, session_id limit ${linkSessionsMax + 1}`

const sameSessionsSql = `
  select device_id, session_id, toUnixTimestamp64Milli(max(sessions.last_seen_at)) as last
  from sessions
  where ${inTenant} and session_hash in {hashes:Array(UInt64)} and device_id != {id:String}
  group by device_id, session_id
  order by last desc, device_id, session_id limit ${linkPairsMax + 1}`

const userSessionsSql = `
  select device_id, session_id, toUnixTimestamp64Milli(min(started_at)) as started,
    toUnixTimestamp64Milli(max(sessions.last_seen_at)), max(verdict).score,
    toString(max(verdict).action), max(verdict).flags, max(risk).rank, max(risk).flags, max(client),
    ${toConnectionSql('max(connection)')}
  from sessions
  where ${inTenant} and device_id in {ids:Array(String)}
  group by device_id, session_id having has(groupUniqArrayArray(users), {user:String})
  order by started desc, session_id desc limit {limit:UInt32}`

const sessionUsersSql = `
  select session_id, arraySlice(arraySort(groupUniqArrayArray(users) as all_users), 1, ${sessionUsersShownMax}),
    length(all_users)
  from sessions
  where ${inTenant} and device_id = {id:String} and session_id in {ids:Array(String)}
  group by session_id having notEmpty(all_users)`

const inTenants = 'tenant_id in {tenants:Array(String)}'

const byTextSql = `
  select 'device' as kind, tenant_id, device_id as id from devices
  where ${inTenants} and startsWith(device_id, {text:String})
  group by tenant_id, device_id order by id limit {limit:UInt32}
  union all
  select 'user' as kind, tenant_id, user_id as id from user_devices
  where ${inTenants} and startsWith(user_id, {text:String})
  group by tenant_id, user_id order by id limit {limit:UInt32}
  union all
  select 'session' as kind, tenant_id, session_id as id from sessions
  where ${inTenants} and session_hash = cityHash64({text:String}) and session_id = {text:String}
  group by tenant_id, session_id order by id limit {limit:UInt32}
  union all
  select 'phone' as kind, tenant_id, phone_id as id from phone_installs
  where ${inTenants} and startsWith(phone_id, {text:String})
  group by tenant_id, phone_id order by id limit {limit:UInt32}`

/** How long one of these may take, and the most rows that it reads. */
const readMaxMs = 3_000
/** The engine ends a query itself first, which says why. */
const answerMaxMs = readMaxMs + 500
const defaultRowsReadMax = 50_000_000

type UserSessionRow = [
  ...[deviceId: string, sessionId: string, startedAtMs: number, lastSeenAtMs: number],
  ...[raspScore: number, raspAction: Action, flags: string[]],
  ...[riskRank: number, riskFlags: string[], client: string[], connection: LatestConnection],
]

type PairRow = [id: string, sharedId: string, lastSeenAtMs: number]

const toPairs = (rows: readonly PairRow[]): SharedPair[] =>
  rows
    .slice(0, linkPairsMax)
    .map(([id, sharedId, lastSeenAtMs]) => ({ id, sharedId, lastSeenAtMs }))

/** @param rowsReadMax the most rows that a query reads */
export function createLinkStore(
  clickhouse: Clickhouse,
  { rowsReadMax = defaultRowsReadMax }: { rowsReadMax?: number } = {},
): LinkStore {
  const read = async <Row>(query: string, query_params: Record<string, unknown>) => {
    const result = await clickhouse.query({
      query,
      query_params,
      format: 'JSONCompactEachRow',
      clickhouse_settings: {
        ...uncompiled,
        max_threads: 2,
        max_rows_to_read: String(rowsReadMax),
        max_execution_time: readMaxMs / 1_000,
      },
      use_multipart_params_auto: true,
      abort_signal: AbortSignal.timeout(answerMaxMs),
    })
    return result.json<Row>()
  }
  const readLinks = async (
    { tenantId, id }: { tenantId: string; id: string },
    sql: { sources: string; pairs: string },
  ): Promise<Omit<Links, 'sessionPairs' | 'sessionsSearched'>> => {
    const params = { tenant: tenantId, id }
    const [[count], rows] = await Promise.all([
      read<[number]>(`select count() from (${sql.sources})`, params),
      read<PairRow>(sql.pairs, params),
    ])
    const followedOf = count?.[0] ?? 0
    const followed = Math.min(followedOf, linkSourcesMax)
    const complete = followed === followedOf && rows.length <= linkPairsMax
    return { pairs: toPairs(rows), followed, followedOf, complete }
  }
  const readSameSessions = async (tenantId: string, deviceId: string) => {
    if (isPlaceholderId(deviceId)) return { sessionPairs: [], sessionsSearched: true }
    const params = { tenant: tenantId, id: deviceId }
    try {
      const own = await read<[string, string]>(sessionsOfDeviceSql, params)
      const sessions = new Map(own.slice(0, linkSessionsMax))
      const hashes = [...sessions].flatMap(([id, hash]) =>
        isPlaceholderId(id) ? [] : [BigInt(hash)],
      )
      const rows =
        hashes.length === 0 ? [] : await read<PairRow>(sameSessionsSql, { ...params, hashes })
      const all = own.length <= linkSessionsMax && rows.length <= linkPairsMax
      // Another session may have the same hash.
      const same = toPairs(rows).filter(
        ({ id, sharedId }) => sessions.has(sharedId) && !isPlaceholderId(id),
      )
      return { sessionPairs: same, sessionsSearched: all }
    } catch (error) {
      // Sessions are found by reading all of the tenant, which may be too many.
      if (!isTooMuchToRead(error) && !isTimeout(error)) throw error
      return { sessionPairs: [], sessionsSearched: false }
    }
  }
  return {
    findLinkedDevices: async ({ tenantId, deviceId }) => {
      const [links, sessions] = await Promise.all([
        readLinks(
          { tenantId, id: deviceId },
          { sources: usersOfDeviceSql, pairs: linkedDevicesSql },
        ),
        readSameSessions(tenantId, deviceId),
      ])
      return { ...links, ...sessions }
    },
    findLinkedUsers: async ({ tenantId, userId }) => {
      const sql = { sources: devicesOfUserSql, pairs: linkedUsersSql }
      const links = await readLinks({ tenantId, id: userId }, sql)
      return { ...links, sessionPairs: [], sessionsSearched: true }
    },
    listUserSessions: async ({ tenantId, userId, deviceIds, limit }) => {
      if (deviceIds.length === 0) return []
      const params = { tenant: tenantId, user: userId, ids: deviceIds, limit }
      const rows = await read<UserSessionRow>(userSessionsSql, params)
      return rows.map((row) => ({
        deviceId: row[0],
        sessionId: row[1],
        startedAtMs: row[2],
        lastSeenAtMs: row[3],
        raspScore: row[4],
        raspAction: row[5],
        flags: row[6],
        ...toRisk(row[7]),
        riskFlags: row[8],
        ...toClient(row[9]),
        connection: toLatestConnection(row[10]),
      }))
    },
    findSessionUsers: async ({ tenantId, deviceId, sessionIds }) => {
      if (sessionIds.length === 0) return new Map()
      const rows = await read<[sessionId: string, users: string[], total: number | string]>(
        sessionUsersSql,
        { tenant: tenantId, id: deviceId, ids: sessionIds },
      )
      return new Map(
        rows.map(([sessionId, users, total]) => [sessionId, { users, total: Number(total) }]),
      )
    },
    findByText: async ({ tenantIds, text, limit }) => {
      const rows = await read<[Found['kind'], string, string]>(byTextSql, {
        tenants: tenantIds,
        text,
        limit,
      })
      return rows.map(([kind, tenantId, id]) => ({ kind, tenantId, id }))
    },
  }
}
