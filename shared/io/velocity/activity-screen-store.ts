/**
 * The screen of activity: one query that finds, of many keys, those that may exceed a velocity rule
 * and events that were there twice. Only these are then read in detail.
 */
import type { ClickHouseSettings } from '@clickhouse/client'
import type { VelocityMetric } from '#shared/core/policies/policy.ts'
import { metricSources } from '#shared/core/velocity/activity-counts.ts'
import type { VelocityScreen } from '#shared/core/velocity/velocity-screen.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { type ActivityKey, hashIn, ofKeys } from './activity-rows-store.ts'

export type ScreenQuestion = {
  screen: VelocityScreen
  /** When the first event of the batch was received. */
  firstMs: number
  lastStreamOffset: number
  /** Events of which it is asked whether they were there before. */
  eventHashes: ReadonlySet<string>
  /** A key with more rows is named whatever it exceeds. */
  rowsMax: number
  settings: ClickHouseSettings
}

/** How a metric's subjects are called in the table. */
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
  sightings: [eventHash: string, streamOffset: number | string][],
]

/** Of these keys those that may exceed a rule, have events twice, or have many rows. */
export async function askScreen(
  clickhouse: Clickhouse,
  keys: readonly ActivityKey[],
  { screen, firstMs, lastStreamOffset, eventHashes, rowsMax, settings }: ScreenQuestion,
): Promise<ScreenRow[]> {
  const limits = [...screen].flatMap(([metric, own]) => own.map((limit) => ({ metric, ...limit })))
  const conditions = limits.map(({ metric, threshold }, index) =>
    toCondition(metric, threshold, `after_${index}`),
  )
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
          (toString(packed_event_hash), stream_offset),
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

/**
 * Whether a key may exceed a limit of a metric. Cheap before exact: one window for all events of
 * the batch, as early as the first one's; users and accounts apart, though one that is both counts
 * once; a signal that was both detected and clean, though it may not have gone back.
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
    return `${distinct}(${column}, ${column} != 0 and ${recent})`
  })
  return `(${counts.join(' + ')}) > ${threshold}`
}
