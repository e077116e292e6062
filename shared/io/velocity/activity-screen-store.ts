/**
 * The screen of activity: one query over many keys that finds those that may exceed a velocity
 * rule, and repeated events. Only these are then read in detail.
 */
import type { ClickHouseSettings } from '@clickhouse/client'
import type { VelocityMetric } from '#shared/core/policies/policy.ts'
import { metricSources } from '#shared/core/velocity/activity-counts.ts'
import { newDeviceMs } from '#shared/core/velocity/new-device.ts'
import type { VelocityScreen } from '#shared/core/velocity/velocity-screen.ts'
import type { ClickhouseNode } from '#shared/io/clickhouse/clickhouse.ts'
import { type ActivityKey, hashIn, ofKeys } from './activity-rows-store.ts'

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

/** The column of each subject of a metric. */
const columns: Record<string, string> = {
  session: 'session_hash',
  user: 'user_hash',
  account: 'account_hash',
  platform: 'platform_hash',
  userDevice: 'user_device_hash',
  sessionDevice: 'session_device_hash',
}

export type ScreenRow = [
  tenantId: string,
  keyHash: string,
  rows: number | string,
  suspect: boolean | number,
  sightings: [eventHash: string, streamOffset: number | string, atMs: number | string][],
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
          (toString(packed_event_hash), stream_offset, received_at_ms),
          session_hash != 0 and ${hashIn('packed_event_hash', eventHashes)}
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

/** SQL: the row is of a device. Its last fact is the assertion: 32 bits of the key, then the counter. */
const ofDevice = 'session_hash != 0'
const assertion = columns.sessionDevice!

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
  const device = columns.userDevice!
  const all = `uniqExactIf(${device}, ${device} != 0 and received_at_ms > {${after}:Int64})`
  const old = `uniqExactIf(${device}, ${device} != 0 and received_at_ms > ${lastAfterMs}
    and received_at_ms <= ${dayOldMs})`
  return `(${all} > greatest(1, ${old}))`
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
    const seen = (bits: string) => `groupBitOrIf(${bits}, ${recent})`
    return `bitAnd(${seen('detected_bits')}, ${seen('clean_bits')}) != 0`
  }
  // uniqUpTo stops at a hundred; it is exact up to its bound.
  const distinct = threshold <= 100 ? `uniqUpToIf(${Math.max(1, threshold)})` : 'uniqExactIf'
  const counts = metricSources[metric].subjects.map((subject) => {
    const column = columns[subject]!
    const isIt = subject === 'sessionDevice' ? `not (${ofDevice})` : 'true'
    return `${distinct}(${column}, ${column} != 0 and ${isIt} and ${recent})`
  })
  return `(${counts.join(' + ')}) > ${threshold}`
}
