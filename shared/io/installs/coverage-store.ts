/**
 * Reads how far a tenant's fleet attests: its events by SDK version and platform with what the edge
 * knew of their install, why registrations were rejected, and keys that are where they cannot be.
 */
import {
  coverageQuerySeconds,
  coverageReasonsMax,
  coverageVersionsMax,
  sharedKeysShownMax,
} from '#shared/core/base/limits/analytics.ts'
import { keySightingsMax } from '#shared/core/base/limits/history.ts'
import { type KeyKind, sharedKeyMax, toPhoneOfKey } from '#shared/core/installs/shared-keys.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { readLinks, toName } from '#shared/io/identity/phone-link-store.ts'

export type CoverageSpan = { tenantId: string; fromMs: number; toMs: number }

/** Numbers of events. An event may be in several of them, and in none but the first. */
export type CoveredEvents = {
  events: number
  /** Signed with an install key. */
  installKey: number
  /** Of an install whose evidence held. */
  verified: number
  /** Of an install whose evidence did not hold, or with evidence of its own that did not. */
  rejected: number
  /** Without a token. */
  missing: number
}

export type CoveredVersion = CoveredEvents & { platform: string; sdkVersion: string }

export type RejectedRegistrations = {
  provider: string
  reason: string
  registrations: number
  devices: number
  lastAtMs: number
}

/** A key or certificate of verified registrations that is on more than it is for. */
export type SharedKeyFound = {
  kind: KeyKind
  /** The hash of the key or of the certificate, as the views have it. */
  id: string
  /** On how many phones it ever was, or models for `issuer`. */
  count: number
  /** Those that registered with it in this time. */
  devices: number
  lastAtMs: number
}

export type Coverage = {
  totals: CoveredEvents
  /** How many versions there are; `versions` has those of most events. */
  versionCount: number
  versions: CoveredVersion[]
  reasons: RejectedRegistrations[]
  sharedKeys: SharedKeyFound[]
}

export type ReadCoverage = (span: CoverageSpan) => Promise<Coverage>

const inSpan = `tenant_id = {tenant:String}
    and received_at >= fromUnixTimestamp64Milli({from:Int64})
    and received_at < fromUnixTimestamp64Milli({to:Int64})`

// FINAL counts a redelivered event once. The total is a row of its own, before the versions.
const eventsSql = `
  select grouping(platform) as is_total, platform, sdk_version, count() as events,
    countIf(install_token != ''),
    countIf(ifNull(server_signals.attestation.verified.:Bool, false)),
    countIf(has(detected_server_signals, 'attestation.rejected')),
    countIf(has(detected_server_signals, 'attestation.missing')),
    count() over (partition by is_total) as rows
  from telemetry final
  prewhere ${inSpan}
  group by grouping sets ((), (platform, sdk_version))
  order by is_total desc, events desc, platform, sdk_version
  limit ${coverageVersionsMax + 1}`

type EventsRow = [
  ...[isTotal: 0 | 1, platform: string, sdkVersion: string, events: number],
  ...[installKey: number, verified: number, rejected: number, missing: number, rows: number],
]

const reasonsSql = `
  select provider, reason, count() as registrations, uniq(device_id),
    toUnixTimestamp64Milli(max(received_at))
  from installs final
  prewhere ${inSpan} and verdict = 'rejected'
  group by provider, reason
  order by registrations desc, provider, reason
  limit ${coverageReasonsMax}`

type ReasonRow = [
  ...[provider: string, reason: string],
  ...[registrations: number, devices: number, lastAtMs: number],
]

// As the scorer judges: of all registrations that ever were. The keys are in their order, so that
// it holds one of them at a time.
const sharedKeysSql = `
  select toString(key_hash), kind, uniqExact(subject_hash) as subjects,
    toUnixTimestamp64Milli(max(last_seen_at)),
    groupUniqArrayIf(${keySightingsMax})(device_id, device_id != '')
  from install_keys
  prewhere tenant_id = {tenant:String}
  group by key_hash, kind
  having subjects > multiIf(kind = 'issuer', ${sharedKeyMax.issuer},
      kind = 'key', ${sharedKeyMax.key}, ${sharedKeyMax.remote_issuer})
    and max(last_seen_at) >= fromUnixTimestamp64Milli({from:Int64})
    and min(last_seen_at) < fromUnixTimestamp64Milli({to:Int64})
  order by subjects desc, kind, key_hash
  limit ${sharedKeysShownMax}`

type SharedKeyRow = [
  ...[hash: string, kind: KeyKind, subjects: number, lastAtMs: number, deviceIds: string[]],
]

// Their names are in the registrations alone.
const namesSql = `
  select toString(reinterpretAsUInt64(SHA256(concat(seen.1, ' ', seen.2)))) as hash, any(seen.2),
    uniq(device_id)
  from installs final
  array join [
    ('key', attested_key),
    (
      if(remotely_provisioned, 'remote_issuer', 'issuer'),
      if(provider = 'key_attestation', issuers[1], '')
    )
  ] as seen
  prewhere ${inSpan} and verdict = 'verified' and attested_key != ''
  where seen.2 != '' and has({hashes:Array(String)}, hash)
  group by hash`

type NameRow = [hash: string, id: string, devices: number]

/** @returns a function that rejects when ClickHouse fails, or cannot read the span in time */
export function createCoverageReader(clickhouse: Clickhouse): ReadCoverage {
  const read = async <Row>(
    query: string,
    { tenantId, fromMs, toMs }: CoverageSpan,
    more: Record<string, unknown> = {},
  ) => {
    const result = await clickhouse.query({
      query,
      query_params: { tenant: tenantId, from: fromMs, to: toMs, ...more },
      clickhouse_settings: {
        max_execution_time: coverageQuerySeconds,
        max_threads: 1,
        do_not_merge_across_partitions_select_final: 1,
        optimize_aggregation_in_order: 1,
      },
      format: 'JSONCompactEachRow',
    })
    return result.json<Row>()
  }
  const readSharedKeys = async (span: CoverageSpan): Promise<SharedKeyFound[]> => {
    const found = await read<SharedKeyRow>(sharedKeysSql, span)
    const keys = await countPhones(clickhouse, span.tenantId, found)
    if (keys.length === 0) return []
    const hashes = keys.map(([hash]) => hash)
    const names = await read<NameRow>(namesSql, span, { hashes })
    const nameOf = new Map(names.map(([hash, id, devices]) => [hash, { id, devices }]))
    return keys.flatMap(([hash, kind, count, lastAtMs]) => {
      const name = nameOf.get(hash)
      return name === undefined ? [] : { kind, count, lastAtMs, ...name }
    })
  }
  return async (span) => {
    const [events, reasons, sharedKeys] = await Promise.all([
      read<EventsRow>(eventsSql, span),
      read<ReasonRow>(reasonsSql, span),
      readSharedKeys(span),
    ])
    const total = events.find(([isTotal]) => isTotal === 1)
    const versions = events.filter(([isTotal]) => isTotal === 0)
    return {
      totals: total === undefined ? noEvents : toEvents(total),
      versionCount: versions[0]?.[8] ?? 0,
      versions: versions.map((row) => ({ platform: row[1], sdkVersion: row[2], ...toEvents(row) })),
      reasons: reasons.map(([provider, reason, registrations, devices, lastAtMs]) => ({
        provider,
        reason,
        registrations,
        devices,
        lastAtMs,
      })),
      sharedKeys,
    }
  }
}

/**
 * Counts installs of one phone as one, as the scorer does.
 * @returns the keys that are still on more than they are for
 */
async function countPhones(
  clickhouse: Clickhouse,
  tenantId: string,
  keys: readonly SharedKeyRow[],
): Promise<[hash: string, kind: KeyKind, count: number, lastAtMs: number][]> {
  const ids = new Set(keys.flatMap(([, , , , deviceIds]) => deviceIds))
  const installs = [...ids].map((deviceId) => ({ tenantId, deviceId }))
  const links = await readLinks(clickhouse, installs)
  return keys.flatMap(([hash, kind, subjects, lastAtMs, deviceIds]) => {
    const phones = deviceIds.map((deviceId) => {
      const install = { tenantId, deviceId }
      return toPhoneOfKey(install, links.get(toName(install)))
    })
    const count = subjects - phones.length + new Set(phones).size
    return count > sharedKeyMax[kind] ? [[hash, kind, count, lastAtMs]] : []
  })
}

const noEvents: CoveredEvents = { events: 0, installKey: 0, verified: 0, rejected: 0, missing: 0 }

function toEvents(row: EventsRow): CoveredEvents {
  const [, , , events, installKey, verified, rejected, missing] = row
  return { events, installKey, verified, rejected, missing }
}
