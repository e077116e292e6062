/**
 * Links between devices and users, and the sessions of a user: what an investigation reads beside a
 * history. Placeholder ids such as "unknown" link nothing. Every query is a few key ranges and has
 * a limit of rows.
 */
import { type Clickhouse, uncompiled } from '#shared/io/clickhouse/clickhouse.ts'

/** A device and a user that were seen together. */
export type Link = { userId: string; deviceId: string; lastSeenAtMs: number }

export type UserSession = {
  deviceId: string
  sessionId: string
  startedAtMs: number
  lastSeenAtMs: number
  raspScore: number
  raspAction: string
  flags: string[]
}

/** What has an id that begins with a text. */
export type Found = { kind: 'device' | 'user' | 'session'; tenantId: string; id: string }

export type LinkStore = {
  /** Other devices of some users, most recent first. */
  listDevicesOfUsers: (of: {
    tenantId: string
    userIds: readonly string[]
    except: string
    limit: number
  }) => Promise<Link[]>
  /** Other users of some devices, most recent first. */
  listUsersOfDevices: (of: {
    tenantId: string
    deviceIds: readonly string[]
    except: string
    limit: number
  }) => Promise<Link[]>
  /** Sessions of a user on some devices, most recent first. */
  listUserSessions: (of: {
    tenantId: string
    userId: string
    deviceIds: readonly string[]
    limit: number
  }) => Promise<UserSession[]>
  /** Devices and users by the beginning of their id, sessions by the whole of it. */
  findByText: (of: {
    tenantIds: readonly string[]
    text: string
    limit: number
  }) => Promise<Found[]>
}

const inTenant = 'tenant_id = {tenant:String}'

const devicesOfUsersSql = `
  select user_id, device_id, toUnixTimestamp64Milli(max(last_seen_at)) as last from user_devices
  where ${inTenant} and user_id in {ids:Array(String)} and device_id != {except:String}
  group by user_id, device_id having max(is_placeholder) = 0
  order by last desc, user_id, device_id limit {limit:UInt32}`

const usersOfDevicesSql = `
  select user_id, device_id, toUnixTimestamp64Milli(max(devices.last_seen_at)) as last
  from devices array join users as user_id
  where ${inTenant} and device_id in {ids:Array(String)} and user_id != {except:String}
  group by user_id, device_id
  order by last desc, user_id, device_id limit {limit:UInt32}`

const userSessionsSql = `
  select device_id, session_id, toUnixTimestamp64Milli(min(started_at)) as started,
    toUnixTimestamp64Milli(max(sessions.last_seen_at)), max(verdict).score,
    toString(max(verdict).action), max(verdict).flags
  from sessions
  where ${inTenant} and device_id in {ids:Array(String)}
  group by device_id, session_id having has(groupUniqArrayArray(users), {user:String})
  order by started desc, session_id desc limit {limit:UInt32}`

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
  group by tenant_id, session_id order by id limit {limit:UInt32}`

/** How long one of these may take, and the most rows that it reads. */
const readMaxMs = 3_000
const rowsReadMax = 50_000_000

export function createLinkStore(clickhouse: Clickhouse): LinkStore {
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
      abort_signal: AbortSignal.timeout(readMaxMs),
    })
    return result.json<Row>()
  }
  const listLinks = async (query: string, params: Record<string, unknown>): Promise<Link[]> => {
    const rows = await read<[string, string, number]>(query, params)
    return rows.map(([userId, deviceId, lastSeenAtMs]) => ({ userId, deviceId, lastSeenAtMs }))
  }
  return {
    listDevicesOfUsers: async ({ tenantId, userIds, except, limit }) => {
      if (userIds.length === 0) return []
      return listLinks(devicesOfUsersSql, { tenant: tenantId, ids: userIds, except, limit })
    },
    listUsersOfDevices: async ({ tenantId, deviceIds, except, limit }) => {
      if (deviceIds.length === 0) return []
      return listLinks(usersOfDevicesSql, { tenant: tenantId, ids: deviceIds, except, limit })
    },
    listUserSessions: async ({ tenantId, userId, deviceIds, limit }) => {
      if (deviceIds.length === 0) return []
      const params = { tenant: tenantId, user: userId, ids: deviceIds, limit }
      const rows = await read<[string, string, number, number, number, string, string[]]>(
        userSessionsSql,
        params,
      )
      return rows.map((row) => ({
        deviceId: row[0],
        sessionId: row[1],
        startedAtMs: row[2],
        lastSeenAtMs: row[3],
        raspScore: row[4],
        raspAction: row[5],
        flags: row[6],
      }))
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
