/**
 * Backtests: run a policy over a tenant's stored events, two at a time in one console. A backtest
 * runs in slices and reports its progress. It only reads.
 */

import type { ProblemBody } from '#shared/core/http/problem.ts'
import {
  type BacktestReport,
  createBacktestSum,
  eventsPerSlice,
  type ScoredBy,
} from '#shared/core/policies/backtest.ts'
import { toBacktestSummary } from '#shared/core/policies/backtest-summary.ts'
import { type Policy, toPolicyHash } from '#shared/core/policies/policy.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import type { Lease } from '#shared/io/leases/leases.ts'
import type { BacktestOutcomes } from '#shared/io/policies/backtest-outcome-store.ts'
import { createBacktestStore, type PreparedBacktest } from '#shared/io/policies/backtest-store.ts'
import { saveBacktest } from '#shared/io/policies/policy-backtest-store.ts'
import { createPolicyDocuments } from '#shared/io/policies/policy-document-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { createTenantRuns, type TenantRunDeps, type TenantRuns } from './tenant-runs.ts'

type BacktestDeps = TenantRunDeps & {
  postgres: Postgres
  /** A client that waits as long as a slice may take. */
  clickhouse: Clickhouse
  metrics: Metrics
  nowMs: () => number
}

type BacktestRequest = {
  tenantId: string
  policy: Policy
  sinceMs: number | null
  requestId: string
}

/** Events of a policy that were not scored again, and why. */
type NotRecomputed = { policy_hash: string; events: number; why: 'not_stored' | 'too_many' }

export type BacktestResult = BacktestReport & {
  tenant_id: string
  since: string | null
  policy: { name: string; policy_hash: string }
  outcomes: BacktestOutcomes
  /** The policies that scored the events, most events first. */
  scored_by: { policy_hash: string; name: string; events: number }[]
  not_recomputed: NotRecomputed[]
  duration_ms: number
}

export type BacktestProgress = {
  slices_done: number
  slices: number
  /** The last range of device ids; null is open. */
  devices: { from: string | null; to: string | null } | 'test devices' | null
  events_done: number
  events: number
  elapsed_ms: number
}

export type BacktestLine =
  | { progress: BacktestProgress }
  | { report: BacktestResult }
  | { problem: ProblemBody }

export type Backtests = TenantRuns<BacktestRequest, BacktestLine>

/** Concurrent backtests of a console: each uses up to two threads of the engine. */
const runningMax = 2
/** Policies in one query; each adds a look-up per event. */
const scorersMax = 16

/** Creates the backtests of one console. */
export const createBacktests = (deps: BacktestDeps): Backtests =>
  createTenantRuns<BacktestRequest, BacktestLine>(deps, {
    noun: 'backtest',
    outcomes: deps.metrics.counter('di_backtests_total', 'Backtests of policies', ['outcome']),
    runningMax,
    isLast: (line) => 'report' in line,
    toLines: (request, run) => backtest(deps, request, run),
  })

async function* backtest(
  deps: BacktestDeps,
  { tenantId, policy, sinceMs }: BacktestRequest,
  { signal, lease }: { signal: AbortSignal; lease: Lease },
): AsyncGenerator<BacktestLine, void> {
  const startedMs = deps.nowMs()
  const range = { tenantId, sinceMs }
  const store = createBacktestStore(deps.clickhouse, signal)
  const scorers = await findScorers(deps, await store.listScorers(range))
  const { events } = scorers
  const sum = createBacktestSum()
  sum.addCorrelated(await store.listCorrelated(range))
  const slices = await store.planSlices(range, Math.max(1, Math.ceil(events / eventsPerSlice)))
  const elapsedMs = () => Math.round(deps.nowMs() - startedMs)
  const toProgress = (done: number): BacktestLine => ({
    progress: {
      slices_done: done,
      slices: slices.length,
      devices: done === 0 ? null : slices[done - 1]!,
      events_done: sum.report().events,
      events,
      elapsed_ms: elapsedMs(),
    },
  })
  yield toProgress(0)
  let prepared: PreparedBacktest | null = null
  if (events > 0) {
    prepared = await store.prepare({ ...range, policy, scoredBy: scorers.scoredBy })
    for (const [at, slice] of slices.entries()) {
      sum.add(await store.scoreSlice(prepared, slice))
      signal.throwIfAborted()
      yield toProgress(at + 1)
    }
  }
  const outcomes = await store.readOutcomes(range, prepared)
  signal.throwIfAborted()
  const report = {
    tenant_id: tenantId,
    since: sinceMs === null ? null : new Date(sinceMs).toISOString(),
    policy: { name: policy.name, policy_hash: toPolicyHash(policy) },
    ...sum.report(),
    outcomes,
    scored_by: scorers.known,
    not_recomputed: scorers.notRecomputed,
    duration_ms: elapsedMs(),
  }
  const { policy_hash: policyHash } = report.policy
  await saveBacktest(lease, { tenantId, policyHash, summary: toBacktestSummary(report) })
  yield { report }
}

type Scorers = {
  /** Rows: a redelivered event may be counted twice until it is merged. */
  events: number
  scoredBy: ScoredBy[]
  known: BacktestResult['scored_by']
  notRecomputed: NotRecomputed[]
}

async function findScorers(
  { postgres }: BacktestDeps,
  found: readonly { policyHash: string; events: number }[],
): Promise<Scorers> {
  const { findPolicy } = createPolicyDocuments(postgres)
  const scorers: Scorers = { events: 0, scoredBy: [], known: [], notRecomputed: [] }
  for (const { policyHash, events } of found) {
    scorers.events += events
    const policy = await findPolicy(policyHash)
    const plain = { policy_hash: policyHash, events }
    if (policy === null) scorers.notRecomputed.push({ ...plain, why: 'not_stored' })
    else if (scorers.scoredBy.length >= scorersMax) {
      scorers.notRecomputed.push({ ...plain, why: 'too_many' })
    } else {
      scorers.scoredBy.push({ policyHash, policy })
      scorers.known.push({ ...plain, name: policy.name })
    }
  }
  return scorers
}
