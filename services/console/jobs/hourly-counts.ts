/**
 * Counts each finished hour for the overview and the fleet page: of all tenants once everything
 * received in it is decided, and of one tenant again where the hour got events later or was
 * forgotten by an erasure. A named lock lets one console count at a time; an hour whose counting
 * was interrupted has no mark, is read from events, and is counted again.
 */
import { dayMs, hourMs, type Span } from '#shared/core/base/instants.ts'
import { hourlyCountDays, hourlyCountDelayMs } from '#shared/core/base/limits/analytics.ts'
import {
  createHourlyCountStore,
  type HourlyCountStore,
  hourlyCountLock,
} from '#shared/io/analytics/hourly-count-store.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { type Locks, tryNamedLock } from '#shared/io/postgres/named-lock-store.ts'
import type { Log } from '#shared/io/process/log.ts'
import { type Metrics, startAtZero } from '#shared/io/process/metrics.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'

type HourlyCountDeps = {
  /** Connections for work that holds a lock. */
  locks: Locks
  clickhouse: Clickhouse
  log: Log
  metrics: Metrics
  wallMs: () => number
}

export type HourlyCounts = {
  /**
   * Counts what is due.
   * @returns `elsewhere` when another console holds the lock, `waiting` when hours are not decided
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
  startAtZero(hours, [{ scope: 'all' }, { scope: 'tenant' }])
  const store = createHourlyCountStore(deps.clickhouse)
  const onCounted = (scope: 'all' | 'tenant', span: Span) =>
    hours.inc({ scope }, (span.toMs - span.fromMs) / hourMs)
  const runRound: HourlyCounts['runRound'] = async (signal = new AbortController().signal) =>
    (await tryNamedLock(deps.locks, hourlyCountLock, () =>
      countDue(store, { signal, onCounted, wallMs: deps.wallMs }),
    )) ?? 'elsewhere'
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

type Round = {
  signal: AbortSignal
  wallMs: () => number
  onCounted: (scope: 'all' | 'tenant', span: Span) => void
}

async function countDue(
  store: HourlyCountStore,
  { signal, onCounted, wallMs }: Round,
): Promise<'counted' | 'waiting'> {
  const earliest = Math.floor((wallMs() - hourlyCountDays * dayMs) / hourMs) * hourMs
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
