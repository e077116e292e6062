/**
 * Reads the prevalence of signals by SDK version and day, and stores the spikes found. Days are
 * spans of 24 hours that end with the check. A device counts once in a span, so redelivered events
 * change nothing.
 */
import type { PrevalenceSample, PrevalenceSpike } from '#shared/core/analytics/prevalence-spike.ts'
import { type Clickhouse, insertRows, toInstant } from '#shared/io/clickhouse/clickhouse.ts'
import { onEveryNode } from '#shared/io/clickhouse/shards.ts'

export type SpikeKey = { platform: string; sdkVersion: string; signal: string }

/** One platform and version: its fleet by span, the last first, and where signals were detected. */
export type VersionPrevalence = {
  platform: string
  sdkVersion: string
  /** By span: 0 is the last 24 hours. */
  fleets: number[]
  /** By signal: on how many devices of each span. */
  devices: Map<string, number[]>
}

export type StoredSpike = SpikeKey & {
  startedAtMs: number
  checkedAtMs: number
  endedAtMs: number | null
  devices: number
  alerts: number
} & PrevalenceSpike

/** The devices and alerts of a spike; at most `affectedMax` ids of each. */
export type AffectedBySpike = {
  devices: number
  alerts: number
  deviceIds: string[]
  alertIds: string[]
}

type Question = { tenantId: string; atMs: number }

export type PrevalenceSpikeStore = {
  /** Tenants that sent anything in the last 24 hours. */
  listActiveTenants: (atMs: number) => Promise<string[]>
  readPrevalence: (question: Question & { spans: number }) => Promise<VersionPrevalence[]>
  /** Newest first. */
  listSpikes: (question: { tenantId: string; openOnly: boolean }) => Promise<StoredSpike[]>
  saveSpikes: (tenantId: string, spikes: readonly StoredSpike[]) => Promise<void>
  findAffected: (
    question: SpikeKey & { tenantId: string; fromMs: number; untilMs: number },
  ) => Promise<AffectedBySpike>
  /** When all tenants were last checked; 0 for never. */
  readCheckedAt: () => Promise<number>
  markChecked: (atMs: number) => Promise<void>
  countOpen: () => Promise<number>
}

const affectedMax = 100
const spikesMax = 1_000
/** A client may invent versions: the largest of the last 24 hours are looked at. */
const versionsMax = 200
const queryMaxSeconds = 60

export function createPrevalenceSpikeStore(clickhouse: Clickhouse): PrevalenceSpikeStore {
  const read = async <Row>(query: string, params: Record<string, unknown>): Promise<Row[]> => {
    const result = await clickhouse.query({
      query,
      query_params: params,
      clickhouse_settings: { max_execution_time: queryMaxSeconds },
      format: 'JSONCompactEachRow',
    })
    return result.json<Row>()
  }
  return {
    listActiveTenants: async (atMs) => {
      const rows = await read<[string]>(
        `select distinct tenant_id from sdk_baselines
         where hour >= fromUnixTimestamp64Milli({at:Int64}) - interval 25 hour order by tenant_id`,
        { at: atMs },
      )
      return rows.map(([tenantId]) => tenantId)
    },
    readPrevalence: async ({ tenantId, atMs, spans }) => {
      const params = { tenant: tenantId, at: atMs, spans, versions: versionsMax }
      return toVersions(await read<PrevalenceRow>(prevalenceSql, params), spans)
    },
    listSpikes: async ({ tenantId, openOnly }) =>
      (await read<SpikeRow>(spikesSql, { tenant: tenantId, open: openOnly, limit: spikesMax })).map(
        toSpike,
      ),
    saveSpikes: (tenantId, spikes) =>
      insertRows(
        clickhouse,
        'prevalence_spikes',
        spikes.map((spike) => toSpikeRow(tenantId, spike)),
      ),
    findAffected: async ({ tenantId, platform, sdkVersion, signal, fromMs, untilMs }) => {
      const what = { tenant: tenantId, platform, version: sdkVersion, signal }
      const [row] = await read<[number, string[], number, string[]]>(affectedSql, {
        ...what,
        from: fromMs,
        until: untilMs,
        limit: affectedMax,
      })
      const [devices, deviceIds, alerts, alertIds] = row!
      return { devices, alerts, deviceIds, alertIds }
    },
    readCheckedAt: async () => {
      const [row] = await read<[number]>(
        'select toUnixTimestamp64Milli(max(checked_at)) from prevalence_checks',
        {},
      )
      return row![0]
    },
    markChecked: (atMs) =>
      insertRows(clickhouse, 'prevalence_checks', [{ singleton: 1, checked_at: toInstant(atMs) }]),
    countOpen: async () => {
      const [row] = await read<[number]>(
        'select count() from prevalence_spikes final where ended_at is null',
        {},
      )
      return row![0]
    },
  }
}

/** Has all tenants checked at the next look of the job, as after a history was written. */
export async function requestPrevalenceCheck(clickhouse: Clickhouse): Promise<void> {
  await onEveryNode(clickhouse, (node) =>
    node.command({ query: 'truncate table prevalence_checks' }),
  )
}

type PrevalenceRow = [
  platform: string,
  sdkVersion: string,
  span: number,
  fleet: number,
  devices: Record<string, number>,
]

// Signals of the client alone: a spike is about what a release of the SDK reports.
const prevalenceSql = `
  with fromUnixTimestamp64Milli({at:Int64}, 'UTC') as until
  select
    platform, sdk_version,
    intDiv(toInt64({at:Int64}) - toUnixTimestamp64Milli(received_at) - 1, 86400000) as span,
    uniqExact(sipHash64(device_id)) as fleet,
    uniqExactMap(mapFromArrays(
      cast(detected_signals as Array(String)),
      arrayMap(signal -> sipHash64(device_id), detected_signals)
    )) as devices
  from telemetry
  where tenant_id = {tenant:String}
    and received_at >= until - toIntervalDay({spans:UInt16}) and received_at < until
    and (platform, sdk_version) in (
      select platform, sdk_version from telemetry
      where tenant_id = {tenant:String}
        and received_at >= until - interval 1 day and received_at < until
      group by platform, sdk_version
      order by uniq(device_id) desc
      limit {versions:UInt32}
    )
  group by platform, sdk_version, span`

function toVersions(rows: readonly PrevalenceRow[], spans: number): VersionPrevalence[] {
  const versions = new Map<string, VersionPrevalence>()
  const zeros = () => Array.from({ length: spans }, () => 0)
  for (const [platform, sdkVersion, span, fleet, devices] of rows) {
    const key = JSON.stringify([platform, sdkVersion])
    let version = versions.get(key)
    if (version === undefined) {
      version = { platform, sdkVersion, fleets: zeros(), devices: new Map() }
      versions.set(key, version)
    }
    version.fleets[span] = fleet
    for (const [signal, count] of Object.entries(devices)) {
      const counts = version.devices.get(signal) ?? zeros()
      counts[span] = count
      version.devices.set(signal, counts)
    }
  }
  return [...versions.values()]
}

/** The spans from one on, as days to compare with. */
export function toDays(
  version: VersionPrevalence,
  signal: string,
  from: number,
): PrevalenceSample[] {
  const counts = version.devices.get(signal)
  return version.fleets.slice(from).map((fleet, at) => ({
    fleet,
    devices: counts?.[from + at] ?? 0,
  }))
}

type SpikeRow = [
  ...[platform: string, sdkVersion: string, signal: string],
  ...[startedAtMs: number, checkedAtMs: number, endedAtMs: number | null],
  ...[
    prevalence: number,
    earlierPrevalence: number | null,
    elsewherePrevalence: number | null,
    zScore: number,
  ],
  ...[devices: number, alerts: number],
]

const spikesSql = `
  select
    platform, sdk_version, signal, toUnixTimestamp64Milli(started_at),
    toUnixTimestamp64Milli(checked_at), toUnixTimestamp64Milli(ended_at), share, earlier_share,
    elsewhere_share, z_score, devices, alerts
  from prevalence_spikes final
  where tenant_id = {tenant:String} and (ended_at is null or not {open:Bool})
  order by started_at desc, platform, sdk_version, signal
  limit {limit:UInt32}`

function toSpike(row: SpikeRow): StoredSpike {
  const [platform, sdkVersion, signal, startedAtMs, checkedAtMs, endedAtMs, ...measured] = row
  const [prevalence, earlierPrevalence, elsewherePrevalence, zScore, devices, alerts] = measured
  return {
    platform,
    sdkVersion,
    signal,
    startedAtMs,
    checkedAtMs,
    endedAtMs,
    prevalence,
    earlierPrevalence,
    elsewherePrevalence,
    zScore,
    devices,
    alerts,
  }
}

const toSpikeRow = (tenantId: string, spike: StoredSpike): Record<string, unknown> => ({
  tenant_id: tenantId,
  platform: spike.platform,
  sdk_version: spike.sdkVersion,
  signal: spike.signal,
  started_at: toInstant(spike.startedAtMs),
  checked_at: toInstant(spike.checkedAtMs),
  ended_at: spike.endedAtMs === null ? null : toInstant(spike.endedAtMs),
  share: spike.prevalence,
  earlier_share: spike.earlierPrevalence,
  elsewhere_share: spike.elsewherePrevalence,
  z_score: spike.zScore,
  devices: spike.devices,
  alerts: spike.alerts,
})

// Alerts are copied a second after they are raised, so a check may miss the last of them.
const affectedSql = `
  with
    fromUnixTimestamp64Milli({from:Int64}, 'UTC') as begun,
    fromUnixTimestamp64Milli({until:Int64}, 'UTC') as until,
    found as (
      select device_id, event_id from telemetry
      where tenant_id = {tenant:String} and received_at >= begun and received_at < until
        and platform = {platform:String} and sdk_version = {version:String}
        and has(detected_signals, {signal:String})
    ),
    affected as (
      select alert_id, created_at from alerts_replica final
      where tenant_id = {tenant:String} and created_at >= begun
        and event_id in (select event_id from found)
        and arrayExists(
          evidence -> has(JSONExtract(evidence, 'signals', 'Array(String)'), {signal:String}),
          reason_evidence
        )
    )
  select
    (select uniqExact(device_id) from found),
    (select arraySort(groupArray(device_id)) from (
      select distinct device_id from found order by device_id limit {limit:UInt32})),
    (select count() from affected),
    (select groupArray(alert_id) from (
      select alert_id from affected order by created_at desc, alert_id limit {limit:UInt32}))`
