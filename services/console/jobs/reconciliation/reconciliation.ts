/**
 * Runs reconciliation: compares what each stage counted per tenant and hour. One console has its
 * lease for as long as it runs. Every two seconds the watermark advances (`watermark.ts`), every
 * minute the last hours of all tenants are compared, and every hour the next two days of the month
 * before them, so the cost of a comparison does not grow with the history (`comparison.ts`).
 */
import { takeoverMs } from '#shared/core/base/limits/tenants.ts'
import {
  reconciliationHourMs,
  toReconciliationHour,
} from '#shared/core/reconciliation/reconciliation.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import type { Prover } from '#shared/io/keys/proofs.ts'
import { type Lease, type Leases, withLease } from '#shared/io/leases/leases.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import type { ReconciliationStore } from '#shared/io/reconciliation/reconciliation-store.ts'
import { type Poller, poll } from '../../../../shared/io/process/poll.ts'
import { type Comparison, createComparison } from './comparison.ts'
import {
  createDifferenceGauge,
  type DifferenceGauge,
  type FoundDifference,
} from './difference-gauge.ts'
import { createWatermark, type Watermark } from './watermark.ts'

type ReconciliationDeps = {
  findNats: () => Nats | null
  postgres: Postgres
  leases: Leases
  clickhouse: Clickhouse
  store: ReconciliationStore
  /** Checks edges' reports: of the purpose `edge report`. */
  reportProver: Prover
  log: Log
  metrics: Metrics
  /** The monotonic clock, and the wall clock. */
  nowMs: () => number
  wallMs: () => number
  /** How long a difference must last to be reported, 5 s by default. */
  confirmMs?: number
}

export type Reconciliation = {
  /**
   * Advances the watermark and copies the counts that edges report.
   * @returns false when the scorers did not decide every published event within seconds, or when
   *   another console has the lease
   */
  advance: () => Promise<boolean>
  /**
   * Compares the hours from `fromMs` to before `toMs` (open when left out), and sets the metric.
   * @returns the differences
   */
  compare: (fromMs: number, toMs?: number) => Promise<FoundDifference[]>
  /** Does both until it is stopped, while this console has the lease. */
  start: () => Poller
}

const leaseName = 'reconciliation'
const advanceEveryMs = 2_000
const compareEveryMs = 60_000
const recentMs = 3 * reconciliationHourMs
/** Older hours are compared in parts: a month in fifteen hours. */
const olderEveryMs = reconciliationHourMs
const olderPartMs = 2 * 24 * reconciliationHourMs
const olderMs = 31 * 24 * reconciliationHourMs
/** Creates the reconciliation job of one console. */
export function createReconciliation(deps: ReconciliationDeps): Reconciliation {
  const stopped = new AbortController()
  const gauge = createDifferenceGauge(deps.metrics, deps.nowMs)
  const watermark = createWatermark(deps, stopped.signal)
  const comparison = createComparison(deps, gauge, stopped.signal)
  const run = { deps, gauge, watermark, comparison }
  return {
    advance: async () => (await withLease(deps.leases, leaseName, watermark.advance)) ?? false,
    compare: comparison.compare,
    start: () => {
      const acquire = () =>
        withLease(deps.leases, leaseName, (lease) => runHeld(run, lease, stopped.signal)).finally(
          gauge.reset,
        )
      const running = poll(acquire, stopped.signal, {
        ...logged(deps, 'reconciliation cannot run'),
        everyMs: takeoverMs,
      })
      return {
        stop: async () => {
          stopped.abort()
          await running
        },
      }
    },
  }
}

/** A single failure is normal at start, before NATS is connected. */
const logged = ({ log }: ReconciliationDeps, failure: string) => ({
  log,
  failure,
  logFromFailure: 2,
})

type Run = {
  deps: ReconciliationDeps
  gauge: DifferenceGauge
  watermark: Watermark
  comparison: Comparison
}

/** Runs until the console stops or loses the lease. */
async function runHeld(run: Run, lease: Lease, stopped: AbortSignal): Promise<void> {
  const { deps, watermark } = run
  const signal = AbortSignal.any([stopped, lease.signal])
  await Promise.all([
    poll(() => watermark.advance(lease), signal, {
      ...logged(deps, 'reconciliation cannot advance its watermark'),
      everyMs: advanceEveryMs,
    }),
    poll(createSchedule(run), signal, {
      ...logged(deps, 'reconciliation cannot compare stages'),
      everyMs: compareEveryMs,
    }),
  ])
}

/** @returns compares the last hours, and once an hour the next part of the older hours */
function createSchedule({ deps, comparison }: Run): () => Promise<void> {
  let olderAtMs = Number.NEGATIVE_INFINITY
  let olderToMs = Number.NEGATIVE_INFINITY
  return async () => {
    const recentFromMs = toReconciliationHour(deps.wallMs()) - recentMs
    await comparison.compare(recentFromMs)
    if (deps.nowMs() - olderAtMs < olderEveryMs) return
    // From the latest part to the earliest, then again.
    const isComplete = olderToMs <= recentFromMs - olderMs
    const toMs = isComplete ? recentFromMs : olderToMs
    await comparison.compare(toMs - olderPartMs, toMs)
    olderToMs = toMs - olderPartMs
    olderAtMs = deps.nowMs()
  }
}
