/**
 * The screen of activity: one query over many keys that finds those that may exceed a velocity
 * rule, and repeated events. Only these are then read in detail.
 */
import type { ClickHouseSettings } from '@clickhouse/client'
import type { VelocityMetric } from '#shared/core/policies/policy.ts'
import {
  type ActivityKind,
  metricSources,
  type Subject,
} from '#shared/core/velocity/activity-counts.ts'
import { newDeviceMs } from '#shared/core/velocity/new-device.ts'
import type { VelocityScreen } from '#shared/core/velocity/velocity-screen.ts'
import type { ClickhouseNode } from '#shared/io/clickhouse/clickhouse.ts'
import { hashIn } from '#shared/io/clickhouse/hash-conditions.ts'
import { type ActivityKey, ofKeys } from './activity-rows-store.ts'

export type ScreenQuery = {
  screen: VelocityScreen
  /** When the first and the last event of the batch were received. */
  firstMs: number
  lastMs: number
  lastStreamOffset: number
  /** Events to find earlier rows of. */
  eventHashes: ReadonlySet<string>
  /** Whether devices with reused counters, or with repeated events, are wanted. */
  seeks: { counters: boolean; replays: boolean }
  /** A key with more rows is always returned. */
  rowsMax: number
  settings: ClickHouseSettings
}

/** SQL: of a device, 48 bits of the hash of its network; 0 where none was measured. */
const networkOfDevice = 'bitAnd(user_device_hash, 281474976710655)'

/** SQL: each subject of a metric, in the rows of its kind of key. */
const columns: Record<Subject, { [kind in ActivityKind]?: string }> = {
  session: { device: 'session_hash' },
  user: { device: 'user_hash', network: 'user_hash' },
  account: { device: 'account_hash', network: 'account_hash' },
  platform: { device: 'platform_hash' },
  userDevice: { user: 'user_device_hash' },
  sessionDevice: { session: 'session_device_hash' },
  networkDevice: { network: 'detected_bits' },
  country: { device: 'bitShiftRight(user_device_hash, 48)', user: 'bitAnd(clean_bits, 65535)' },
  network: { device: networkOfDevice },
}

export type ScreenRow = [
  tenantId: string,
  keyHash: string,
  rows: number | string,
  suspect: boolean | number,
  sightings: [
    eventHash: string,
    streamOffset: number | string,
    atMs: number | string,
    network: number | string,
  ][],
]

/** @returns the keys that may exceed a rule, have a repeated event, or have many rows */
export async function queryScreen(
  clickhouse: ClickhouseNode,
  keys: readonly ActivityKey[],
  { screen, firstMs, lastMs, lastStreamOffset, eventHashes, ...more }: ScreenQuery,
): Promise<ScreenRow[]> {
  const { seeks, rowsMax, settings } = more
  const limits = [...screen].flatMap(([metric, own]) => own.map((limit) => ({ metric, ...limit })))
  const conditions = limits.map(({ metric, threshold, narrowestSeconds }, index) =>
    narrowestSeconds === undefined
      ? toCondition(metric, threshold, `after_${index}`)
      : toNewDevice(`after_${index}`, lastMs - narrowestSeconds * 1000, firstMs - newDeviceMs),
  )
  if (seeks.counters) conditions.push(hasReusedCounter)
  if (seeks.replays) conditions.push(hasRepeatedEvent)
  const windows = limits.map(({ windowSeconds }, index) => [
    `after_${index}`,
    firstMs - windowSeconds * 1000,
  ])
  const of = ofKeys(keys, lastStreamOffset)
  const result = await clickhouse.query({
    query: `
      select
        tenant_id,
        toString(key_hash),
        count() as rows,
        ${conditions.join(' or ') || 'false'} as suspect,
        groupUniqArrayIf(
          (toString(packed_event_hash), stream_offset, received_at_ms, ${networkOfDevice}),
          ${ofDevice} and ${hashIn('packed_event_hash', eventHashes)}
        ) as sightings,
        length(sightings) > length(arrayDistinct(sightings.1)) as retried
      from ${of.text}
      group by tenant_id, key_hash
      having suspect or retried or rows > ${rowsMax}`,
    query_params: {
      ...of.params,
      ...Object.fromEntries(windows),
    },
    use_multipart_params_auto: true,
    clickhouse_settings: settings,
    format: 'JSONCompactEachRow',
  })
  return result.json<ScreenRow>()
}

/** SQL: the row is of a device, which alone has a platform. */
const ofDevice = 'platform_hash != 0'
/** SQL: of a device, 32 bits of the asserted key, then the counter. */
const assertion = 'session_device_hash'

/**
 * SQL: of the assertions of a device, one does not rise above the one before it by the same key.
 * Where none is so, no counter was reused. It is cheap where there are no assertions.
 */
const hasReusedCounter = `arrayExists(
  (one, before) -> bitShiftRight(one.1, 32) = bitShiftRight(before.1, 32)
    and bitAnd(one.1, 4294967295) <= bitAnd(before.1, 4294967295),
  arrayPopFront(arraySort(
    one -> (bitShiftRight(one.1, 32), one.2),
    groupUniqArrayIf((${assertion}, stream_offset), ${ofDevice} and ${assertion} != 0) as asserted
  )),
  arrayPopBack(arraySort(one -> (bitShiftRight(one.1, 32), one.2), asserted))
)`

/** SQL: an event of a device has more than one row; also where merges have not joined equal ones. */
const hasRepeatedEvent = `uniqExactIf(packed_event_hash, ${ofDevice}) < countIf(${ofDevice})`

/**
 * SQL: a user may be new on a device: there are two devices at least, and one of them was not seen
 * in the part of every event's window that is a day old.
 * @param after the parameter with the beginning of the first window
 */
function toNewDevice(after: string, lastAfterMs: number, dayOldMs: number): string {
  const device = 'user_device_hash'
  const isIt = `${device} != 0 and not (${ofDevice})`
  const all = `uniqExactIf(${device}, ${isIt} and received_at_ms > {${after}:Int64})`
  const old = `uniqExactIf(${device}, ${isIt} and received_at_ms > ${lastAfterMs}
    and received_at_ms <= ${dayOldMs})`
  return `(${all} > greatest(1, ${old}))`
}

/**
 * The upper seven bits of a longitude and of a latitude, as `place.ts` keeps them: cells of 2.82 by
 * 1.41 degrees. The way along a meridian and a parallel is no shorter than the straight one, and a
 * degree is at most 111.2 km, so nothing in one cell is more than 470 km apart.
 */
const cellBits = '0xFE00FE0000000000'

/**
 * SQL: a user may have travelled impossibly: there are two cells, or two countries without
 * coordinates, or one of each.
 */
function toTravel(recent: string): string {
  const flags = 'bitAnd(bitShiftRight(clean_bits, 16), 65535)'
  const cell = `if(bitAnd(${flags}, 1) = 0, bitAnd(clean_bits, 65535),
    bitOr(bitAnd(clean_bits, ${cellBits}), 65536))`
  const tells = `clean_bits != 0 and bitAnd(${flags}, 2) = 0 and not (${ofDevice})`
  return `(uniqUpToIf(1)(${cell}, ${tells} and ${recent}) > 1)`
}

/**
 * SQL: a key may exceed a limit of a metric. It is cheap and errs on the side of yes: one window
 * from the first event of the batch for all; users and accounts are added up, although one id that
 * is both counts once; a signal that was both detected and clean counts as a flip.
 * @param after the parameter with the beginning of the window
 */
function toCondition(metric: VelocityMetric, threshold: number, after: string): string {
  const recent = `received_at_ms > {${after}:Int64}`
  if (metric === 'signal_flips') {
    const seen = (bits: string) => `groupBitOrIf(${bits}, ${ofDevice} and ${recent})`
    return `bitAnd(${seen('detected_bits')}, ${seen('clean_bits')}) != 0`
  }
  if (metric === 'impossible_travel') return toTravel(recent)
  // uniqUpTo stops at a hundred; it is exact up to its bound.
  const distinct = threshold <= 100 ? `uniqUpToIf(${Math.max(1, threshold)})` : 'uniqExactIf'
  const { kind, subjects } = metricSources[metric]
  const isOfKind = kind === 'device' ? ofDevice : `not (${ofDevice})`
  const counts = subjects.map((subject) => {
    const column = columns[subject][kind]!
    return `${distinct}(${column}, ${column} != 0 and ${isOfKind} and ${recent})`
  })
  return `(${counts.join(' + ')}) > ${threshold}`
}
