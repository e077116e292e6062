/**
 * Reads the history of a user: its devices, each with when the user was first and last seen on it
 * and the highest score there. One key range, aggregated anew each time, so that an answer never
 * depends on which merges have run.
 */
import { type Clickhouse, smallQueryOf } from '#shared/io/clickhouse/clickhouse.ts'
import { readRowsInPieces } from '#shared/io/clickhouse/clickhouse-rows.ts'

export type UserDevice = {
  deviceId: string
  firstSeenAtMs: number
  lastSeenAtMs: number
  peakRaspScore: number
  /** The highest risk score, by which alerts are raised. */
  peakRiskScore: number
}

export type UserTotals = {
  firstSeenAtMs: number
  lastSeenAtMs: number
  peakRaspScore: number
  /** The highest risk score, by which alerts are raised. */
  peakRiskScore: number
  devices: number
}

/** Where a page ended: its last device. */
export type UserDevicePosition = { lastSeenAtMs: number; deviceId: string }

export type UserKey = { tenantId: string; userId: string }

export type UserStore = {
  /** @returns null when the tenant never named this user or account */
  findUserTotals: (key: UserKey) => Promise<UserTotals | null>
  /** Devices by last sight, then id, both descending, after a position. */
  listUserDevices: (
    key: UserKey & { limit: number; after: UserDevicePosition | null },
  ) => Promise<UserDevice[]>
}

const ofUser = 'from user_devices where tenant_id = {tenant:String} and user_id = {user:String}'

const totalsSql = `
  select toUnixTimestamp64Milli(min(first_seen_at)), toUnixTimestamp64Milli(max(last_seen_at)),
    max(peak_rasp_score), max(peak_risk_score), uniqExact(device_id)
  ${ofUser}`

const devicesSql = (isFirst: boolean) => `
  select device_id, toUnixTimestamp64Milli(min(first_seen_at)),
    toUnixTimestamp64Milli(max(last_seen_at)) as last_ms, max(peak_rasp_score),
    max(peak_risk_score)
  ${ofUser} group by device_id
  ${isFirst ? '' : 'having (last_ms, device_id) < ({last:Int64}, {device:String})'}
  order by last_ms desc, device_id desc limit {limit:UInt32}`

/** How long a query may take, waiting for a connection included. */
const readMaxMs = 2_500

export function createUserStore(clickhouse: Clickhouse): UserStore {
  const read = async <Row>(query: string, params: Record<string, string | number>) => {
    const rows: Row[] = []
    for await (const piece of readRowsInPieces<Row>(clickhouse, {
      query,
      query_params: params,
      clickhouse_settings: smallQueryOf(clickhouse),
      abort_signal: AbortSignal.timeout(readMaxMs),
    })) {
      rows.push(...piece)
    }
    return rows
  }
  return {
    findUserTotals: async ({ tenantId, userId }) => {
      const [row] = await read<[number, number, number, number, number]>(totalsSql, {
        tenant: tenantId,
        user: userId,
      })
      if (row === undefined || row[4] === 0) return null
      const [firstSeenAtMs, lastSeenAtMs, peakRaspScore, peakRiskScore, devices] = row
      return { firstSeenAtMs, lastSeenAtMs, peakRaspScore, peakRiskScore, devices }
    },
    listUserDevices: async ({ tenantId, userId, limit, after }) => {
      const rows = await read<[string, number, number, number, number]>(
        devicesSql(after === null),
        {
          tenant: tenantId,
          user: userId,
          limit,
          ...(after === null ? {} : { last: after.lastSeenAtMs, device: after.deviceId }),
        },
      )
      return rows.map(([deviceId, firstSeenAtMs, lastSeenAtMs, peakRaspScore, peakRiskScore]) => ({
        deviceId,
        firstSeenAtMs,
        lastSeenAtMs,
        peakRaspScore,
        peakRiskScore,
      }))
    },
  }
}
