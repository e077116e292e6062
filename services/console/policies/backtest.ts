/**
 * Backtests: run a policy over a tenant's stored events. One runs at a time for each tenant over
 * all consoles, and two in one console, so that the engine stays free for urgent queries. A
 * backtest runs in slices and reports its progress. It ends when its client disconnects. It only
 * reads.
 */

import { Problem, type ProblemBody, toProblemBody, unavailable } from '#shared/core/http/problem.ts'
import {
  type BacktestReport,
  createBacktestSum,
  eventsPerSlice,
  type ScoredBy,
} from '#shared/core/policies/backtest.ts'
import { type Policy, toPolicyHash } from '#shared/core/policies/policy.ts'
import { type Clickhouse, toLoggable } from '#shared/io/clickhouse/clickhouse.ts'
import { toProblem } from '#shared/io/http/http-server.ts'
import { createBacktestStore } from '#shared/io/policies/backtest-store.ts'
import { createPolicyDocuments } from '#shared/io/policies/policy-document-store.ts'
import { type Locks, tryNamedLock } from '#shared/io/postgres/named-lock-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { within } from '#shared/io/process/pause.ts'

type BacktestDeps = {
  postgres: Postgres
  /** Connections for work that holds a lock. */
  locks: Locks
  /** A client that waits as long as a slice may take. */
  clickhouse: Clickhouse
  log: Log
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

type RunningBacktest = {
  /** Progress, then the report or a problem as the last line. */
  lines: () => AsyncGenerator<BacktestLine, void>
  /** Cancels it. Call it in the end in any case. */
  cancel: () => void
}

export type Backtests = {
  /** @throws Problem conflict when one runs already for the tenant; unavailable */
  start: (request: BacktestRequest) => Promise<RunningBacktest>
  /** Cancels all running backtests. */
  stop: () => void
}

/** Concurrent backtests of a console: each uses up to two threads of the engine. */
const runningMax = 2
/** Policies in one query; each adds a look-up per event. */
const scorersMax = 16
/** How long the last line waits for the release of the lock: Postgres may be unavailable. */
const releaseMaxMs = 1_000

/** Creates the backtests of one console. */
export function createBacktests(deps: BacktestDeps): Backtests {
  const outcomes = deps.metrics.counter('di_backtests_total', 'Backtests of policies', ['outcome'])
  const running = new Set<AbortController>()
  const count = (outcome: string) => outcomes.inc({ outcome })
  return {
    start: async (request) => {
      if (running.size >= runningMax) {
        count('refused')
        throw unavailable(`${runningMax} backtests are running here; try again later.`)
      }
      const abort = new AbortController()
      running.add(abort)
      let released: Promise<void>
      try {
        released = (await acquireLock(deps, request, abort.signal, () => running.delete(abort)))
          .released
      } catch (error) {
        running.delete(abort)
        count('refused')
        throw error
      }
      return {
        lines: () => streamLines(deps, request, { abort, released }, count),
        cancel: () => abort.abort(),
      }
    },
    stop: () => {
      for (const abort of running) abort.abort()
    },
  }
}

/**
 * Acquires the tenant's lock and releases it when the signal aborts.
 * @returns a promise that resolves once the lock is released
 */
async function acquireLock(
  { locks }: BacktestDeps,
  { tenantId }: BacktestRequest,
  signal: AbortSignal,
  onEnd: () => void,
): Promise<{ released: Promise<void> }> {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  await new Promise<void>((resolve, reject) => {
    tryNamedLock(locks, `backtest ${tenantId}`, async () => {
      resolve()
      await new Promise<void>((ended) => {
        if (signal.aborted) ended()
        else signal.addEventListener('abort', () => ended(), { once: true })
      })
      return true
    })
      .then((acquired) => {
        if (acquired === null) reject(busy(tenantId))
      }, reject)
      .finally(() => {
        onEnd()
        release()
      })
  })
  return { released }
}

function busy(tenantId: string): Problem {
  return new Problem('conflict', `A backtest of tenant ${tenantId} is running already.`)
}

/** The tenant's lock, which `abort` releases. */
type Lock = { abort: AbortController; released: Promise<void> }

async function* streamLines(
  deps: BacktestDeps,
  request: BacktestRequest,
  { abort, released }: Lock,
  count: (outcome: string) => void,
): AsyncGenerator<BacktestLine, void> {
  let outcome = 'cancelled'
  // Release before the last line: the client may start the next backtest after it.
  const release = async () => {
    abort.abort()
    await within(released, releaseMaxMs)
  }
  try {
    for await (const line of backtest(deps, request, abort.signal)) {
      if ('report' in line) await release()
      yield line
    }
    outcome = 'done'
  } catch (error) {
    if (abort.signal.aborted) return
    outcome = 'failed'
    const { requestId } = request
    const cause = unavailable('The stored events cannot be read at the moment.', toLoggable(error))
    const problem = toProblem(error instanceof Problem ? error : cause, deps.log)
    await release()
    yield { problem: toProblemBody(problem, requestId) }
  } finally {
    abort.abort()
    count(outcome)
  }
}

async function* backtest(
  deps: BacktestDeps,
  { tenantId, policy, sinceMs }: BacktestRequest,
  signal: AbortSignal,
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
  if (events > 0) {
    const prepared = await store.prepare({ ...range, policy, scoredBy: scorers.scoredBy })
    for (const [at, slice] of slices.entries()) {
      sum.add(await store.scoreSlice(prepared, slice))
      signal.throwIfAborted()
      yield toProgress(at + 1)
    }
  }
  yield {
    report: {
      tenant_id: tenantId,
      since: sinceMs === null ? null : new Date(sinceMs).toISOString(),
      policy: { name: policy.name, policy_hash: toPolicyHash(policy) },
      ...sum.report(),
      scored_by: scorers.known,
      not_recomputed: scorers.notRecomputed,
      duration_ms: elapsedMs(),
    },
  }
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
