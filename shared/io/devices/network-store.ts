/**
 * Reads the networks of a tenant: the devices that were last on one, and how many devices and
 * events came from each country and network in a span. Each is one query with limits of rows and
 * time. Devices and users are counted by sketches, exact to tens of thousands.
 */
import type { Span } from '#shared/core/base/instants.ts'
import { type LatestConnection, toLatestConnection } from '#shared/core/devices/device-history.ts'
import type { Connection } from '#shared/core/network/connection-answer.ts'
import { type Clickhouse, uncompiled } from '#shared/io/clickhouse/clickhouse.ts'
import { toConnectionSql } from './latest-connection-sql.ts'

export type NetworkDevice = {
  deviceId: string
  lastSeenAtMs: number
  peakRiskScore: number
  /** Of the event with its latest connection. */
  connectedAtMs: number
}

export type NetworkDevices = {
  /** The latest connection of the device; null when it has none. */
  connection: Connection | null
  /** Other devices whose latest connection is in the same network, latest first. */
  devices: NetworkDevice[]
  /** How many there are. */
  total: number
}

type Counts = { events: number; blocked: number; devices: number }
export type CountryCounts = Counts & { country: string; networks: number }
export type NetworkCounts = Counts & { connection: Connection }

export type FleetNetworks = {
  /** All events of the span, and those whose connection was measured. */
  events: number
  measured: number
  /** Most devices first, without those of unknown country. */
  countries: CountryCounts[]
  networks: NetworkCounts[]
}

export type NetworkStore = {
  /** @returns null when the tenant has never sent anything of this device */
  findNetworkDevices: (query: {
    tenantId: string
    deviceId: string
    limit: number
  }) => Promise<NetworkDevices | null>
  readFleetNetworks: (query: Span & { tenantId: string; limit: number }) => Promise<FleetNetworks>
}

// Rows that are not merged have earlier connections, so what is found by one is grouped again.
const devicesSql = `
  with (
    select (count(), ${toConnectionSql('max(connection)')}) from devices
    where tenant_id = {tenant:String} and device_id = {id:String}
  ) as own
  select own.1, own.2, [] as found, 0 as total
  union all
  select 1, own.2, groupArray({limit:UInt32})((device_id, last, rank, connected)), count()
  from (
    select device_id, toUnixTimestamp64Milli(max(devices.last_seen_at)) as last,
      max(peak_risk_score) as rank,
      toUnixTimestamp64Milli(tupleElement(max(connection), 'at')) as connected
    from devices
    where tenant_id = {tenant:String} and device_id != {id:String} and device_id in (
      select device_id from devices
      where tenant_id = {tenant:String} and connection.network = own.2.2 and own.2.2 != ''
    )
    group by device_id having tupleElement(max(connection), 'network') = own.2.2
    order by last desc, device_id
  )`

type DevicesRow = [
  known: number | string,
  connection: LatestConnection,
  found: [deviceId: string, lastMs: number | string, rank: number, atMs: number | string][],
  total: number | string,
]

/** The bits of `grouping`: a column that a row is not about has 1. */
const levels = { totals: 3, countries: 1, networks: 2 }

// FINAL counts a redelivered event once. A network has one operator, or the last one that a newer
// file of network data names.
const fleetSql = `
  select grouping(country, network) as level, country, network, sum(events), sum(measured),
    sum(blocked), uniqMerge(devices) as device_count, uniqExactIf(network, network != ''),
    argMax(facts, last_at)
  from (
    select connection_country as country, connection_network as network, count() as events,
      countIf(connection_network != '') as measured, countIf(rasp_action = 'BLOCK') as blocked,
      uniqState(device_id) as devices, max(received_at) as last_at,
      argMax((toString(connection_country), connection_asn, toString(connection_organization),
        cast(connection_kinds as Array(String))), received_at) as facts
    from telemetry final
    prewhere tenant_id = {tenant:String}
      and received_at >= fromUnixTimestamp64Milli({from:Int64})
      and received_at < fromUnixTimestamp64Milli({to:Int64})
    group by country, network
  )
  group by grouping sets ((), (country), (network))
  having level = ${levels.totals} or level = ${levels.countries} and country != ''
    or level = ${levels.networks} and network != ''
  order by device_count desc, country, network
  limit {limit:UInt32} by level`

type FleetRow = [
  ...[level: number, country: string, network: string, events: number, measured: number],
  ...[blocked: number, devices: number, networks: number],
  facts: [country: string, asn: number, organization: string, kinds: string[]],
]

/** The engine ends a query itself first, which says why. */
const readMaxMs = 10_000
const rowsReadMax = 500_000_000

export function createNetworkStore(clickhouse: Clickhouse): NetworkStore {
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
        do_not_merge_across_partitions_select_final: 1,
      },
      abort_signal: AbortSignal.timeout(readMaxMs + 500),
    })
    return result.json<Row>()
  }
  return {
    findNetworkDevices: async ({ tenantId, deviceId, limit }) => {
      const params = { tenant: tenantId, id: deviceId, limit }
      const rows = await read<DevicesRow>(devicesSql, params)
      const [known, latest] = rows[0]!
      if (Number(known) === 0) return null
      const others = rows.find(([, , found]) => found.length > 0)
      return {
        connection: toLatestConnection(latest),
        devices: (others?.[2] ?? []).map(([id, lastMs, rank, atMs]) => ({
          deviceId: id,
          lastSeenAtMs: Number(lastMs),
          peakRiskScore: rank,
          connectedAtMs: Number(atMs),
        })),
        total: Number(others?.[3] ?? 0),
      }
    },
    readFleetNetworks: async ({ tenantId, fromMs, toMs, limit }) => {
      const params = { tenant: tenantId, from: fromMs, to: toMs, limit }
      const rows = await read<FleetRow>(fleetSql, params)
      const of = (level: number) => rows.filter((row) => row[0] === level)
      const [all] = of(levels.totals)
      return {
        events: all?.[3] ?? 0,
        measured: all?.[4] ?? 0,
        countries: of(levels.countries).map((row) => ({
          country: row[1],
          networks: row[7],
          ...toCounts(row),
        })),
        networks: of(levels.networks).map((row) => ({
          connection: toLatestConnection([0, row[2], ...row[8]])!,
          ...toCounts(row),
        })),
      }
    },
  }
}

const toCounts = (row: FleetRow): Counts => ({
  events: row[3],
  blocked: row[5],
  devices: row[6],
})
