/**
 * Counts each finished hour for the overview and the fleet page: of all tenants once everything
 * received in it is decided, and of one tenant again where the hour got events later or was
 * forgotten by an erasure. Then it merges the hours of each day that has all of them counted. A
 * lease lets one console count at a time; an hour or a day whose counting was interrupted has
 * no mark, is read from events or hours, and is counted again.
 */

import { isCounted } from '#shared/core/analytics/hourly-coverage.ts'
import { dayMs, hourMs, type Span } from '#shared/core/base/instants.ts'
import { hourlyCountDays, hourlyCountDelayMs } from '#shared/core/base/limits/analytics.ts'
import {
  createDailyCountStore,
  type DailyCountStore,
} from '#shared/io/analytics/counts/daily-count-store.ts'
import {
  createHourlyCountStore,
  type HourlyCountStore,
  hourlyCountLease,
} from '#shared/io/analytics/counts/hourly-count-store.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { type Leases, withLease } from '#shared/io/leases/leases.ts'
import type { Log } from '#shared/io/process/log.ts'
import { type Metrics, startAtZero } from '#shared/io/process/metrics.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'

type HourlyCountDeps = {
  leases: Leases
  clickhouse: Clickhouse
  log: Log
  metrics: Metrics
  wallMs: () => number
}

export type HourlyCounts = {
  /**
   * Counts what is due.
   * @returns `elsewhere` when another console has the lease, `waiting` when hours are not decided
   */
  runRound: (signal?: AbortSignal) => Promise<'elsewhere' | 'counted' | 'waiting'>
  /** Runs rounds until it is stopped. */
  start: () => Poller
}

const pollMs = 60_000

/** Creates the job of one console. */
export function createHourlyCounts(deps: HourlyCountDeps): HourlyCounts {
  const hours = deps.metrics.counter(
    'di_hourly_counts_total',
    'Hours that were counted for the overview, of all tenants and again of one',
    ['scope'],
  )
  const days = deps.metrics.counter(
    'di_daily_counts_total',
    'Days of which the counted hours were merged, of all tenants and again of one',
    ['scope'],
  )
  for (const counter of [hours, days]) startAtZero(counter, [{ scope: 'all' }, { scope: 'tenant' }])
  const onCounted = (scope: Scope, span: Span) =>
    hours.inc({ scope }, (span.toMs - span.fromMs) / hourMs)
  const onMerged = (scope: Scope) => days.inc({ scope })
  const runRound: HourlyCounts['runRound'] = async (signal = new AbortController().signal) =>
    (await withLease(deps.leases, hourlyCountLease, async (lease) => {
      const clickhouse = lease.fence(deps.clickhouse)
      const store = createHourlyCountStore(clickhouse)
      const dailyStore = createDailyCountStore(clickhouse)
      const earliest = Math.floor((deps.wallMs() - hourlyCountDays * dayMs) / hourMs) * hourMs
      const outcome = await countDue(store, { signal, onCounted, earliest })
      await mergeDue({ store, dailyStore }, { signal, onMerged, earliest })
      return outcome
    })) ?? 'elsewhere'
  return {
    runRound,
    start: () =>
      startPolling(runRound, {
        log: deps.log,
        everyMs: pollMs,
        failure: 'hours cannot be counted',
      }),
  }
}

type Scope = 'all' | 'tenant'
type Round = { signal: AbortSignal; earliest: number }

async function countDue(
  store: HourlyCountStore,
  { signal, earliest, onCounted }: Round & { onCounted: (scope: Scope, span: Span) => void },
): Promise<'counted' | 'waiting'> {
  const { hours, now } = await store.findUncounted(earliest)
  let outcome: 'counted' | 'waiting' = 'counted'
  const finished = hours.filter((hour) => hour + hourMs + hourlyCountDelayMs <= now)
  // The latest first: a page shows them most.
  for (const span of toDaySpans(finished).reverse()) {
    if (signal.aborted) return outcome
    if (!(await store.isDecided(span))) {
      outcome = 'waiting'
      continue
    }
    await store.count(null, span)
    onCounted('all', span)
  }
  for (const { tenantId, hours: stale } of await store.listStale(earliest, now)) {
    for (const span of toDaySpans(stale).reverse()) {
      if (signal.aborted) return outcome
      if (!(await store.isDecided(span))) continue
      const countedAt = await store.count(tenantId, span)
      await store.removeEarlier(tenantId, span, countedAt)
      onCounted('tenant', span)
    }
  }
  return outcome
}

/** Merges days once all of their hours are counted, and again after one was counted again. */
async function mergeDue(
  { store, dailyStore }: { store: HourlyCountStore; dailyStore: DailyCountStore },
  { signal, earliest, onMerged }: Round & { onMerged: (scope: Scope) => void },
): Promise<void> {
  for (const day of await dailyStore.findUnmerged(earliest)) {
    if (signal.aborted) return
    await dailyStore.merge(null, day)
    onMerged('all')
  }
  for (const { tenantId, days } of await dailyStore.listStale(earliest)) {
    const span = { fromMs: Math.min(...days), toMs: Math.max(...days) + dayMs }
    const marks = await store.readMarks(tenantId, span)
    for (const day of days) {
      if (signal.aborted) return
      if (!toHours(day).every((hour) => isCounted(hour, marks))) continue
      const mergedAt = await dailyStore.merge(tenantId, day)
      await dailyStore.removeEarlier(tenantId, day, mergedAt)
      onMerged('tenant')
    }
  }
}

const toHours = (day: number): number[] =>
  Array.from({ length: dayMs / hourMs }, (_, hour) => day + hour * hourMs)

/** Joins hours that follow each other, within a day: one insert for each. */
export function toDaySpans(hours: readonly number[]): Span[] {
  const spans: Span[] = []
  for (const hour of hours) {
    const last = spans.at(-1)
    if (last?.toMs === hour && hour % dayMs !== 0) last.toMs = hour + hourMs
    else spans.push({ fromMs: hour, toMs: hour + hourMs })
  }
  return spans
}
