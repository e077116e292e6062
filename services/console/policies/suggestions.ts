/**
 * Policies suggested from outcomes: reads what the stored events and labels say, and computes in a
 * thread. A suggestion is an answer and nothing else: it is neither stored nor set.
 */
import { dayMs } from '#shared/core/base/instants.ts'
import { Problem, type ProblemBody, unavailable } from '#shared/core/http/problem.ts'
import type { OutcomeTable } from '#shared/core/outcomes/suggest/outcome-table.ts'
import type {
  Refusal,
  Suggestion,
  SuggestOptions,
  suggestPolicy,
} from '#shared/core/outcomes/suggest/suggest-policy.ts'
import { type Policy, policySchema } from '#shared/core/policies/policy.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { type OutcomeProgress, readOutcomeTable } from '#shared/io/policies/outcome-table-store.ts'
import { createPolicyStore } from '#shared/io/policies/policy-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { askThread, type ThreadFault } from '#shared/io/process/ask-thread.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { createTenantRuns, type TenantRunDeps, type TenantRuns } from './tenant-runs.ts'

type SuggestionDeps = TenantRunDeps & {
  postgres: Postgres
  /** A client that waits as long as a slice may take. */
  clickhouse: Clickhouse
  metrics: Metrics
  wallMs: () => number
}

type SuggestionRequest = {
  tenantId: string
  /** Sessions of so many days. */
  days: number
  options: SuggestOptions
  requestId: string
}

export type SuggestionReport = {
  tenant_id: string
  /** Labels come late: what was known at this instant. */
  as_of: string
  since: string
  /** Sessions from this instant on test; null without any. */
  newer_since: string | null
  /** The policy in force, beside which everything is compared. */
  active: { name: string; version: number; policy_hash: string }
  sessions: number
  left_out: number
  /** Null when a policy is suggested. */
  refused: Refusal | null
  suggestion: Suggestion | null
}

export type SuggestionLine =
  | { progress: OutcomeProgress }
  | { report: SuggestionReport }
  | { problem: ProblemBody }

export type Suggestions = TenantRuns<SuggestionRequest, SuggestionLine>

/** What the thread gets. */
export type SuggestionWork = { active: Policy; table: OutcomeTable; options: SuggestOptions }
type SuggestionAnswer = ReturnType<typeof suggestPolicy>

/** A suggestion computes on one core and may take the memory of a console that has 1 GiB. */
const runningMax = 1
/** Ten million events take a few seconds; a minute is what is promised. */
const computeMaxMs = 120_000
/** 100,000 rows are some 100 MB with their columns; ten million events took 396 MiB in all. */
const heapMiB = 512

/** Creates the suggestions of one console. */
export const createSuggestions = (deps: SuggestionDeps): Suggestions =>
  createTenantRuns<SuggestionRequest, SuggestionLine>(deps, {
    noun: 'suggestion',
    outcomes: deps.metrics.counter(
      'di_policy_suggestions_total',
      'Policies suggested from outcomes',
      ['outcome'],
    ),
    runningMax,
    isLast: (line) => 'report' in line,
    toLines: (request, { signal }) => suggest(deps, request, signal),
  })

async function* suggest(
  { postgres, clickhouse, wallMs }: SuggestionDeps,
  { tenantId, days, options }: SuggestionRequest,
  signal: AbortSignal,
): AsyncGenerator<SuggestionLine, void> {
  const inForce = await createPolicyStore(postgres).findInForce(tenantId)
  if (inForce === null) throw new Problem('not_found', `There is no tenant ${tenantId}.`)
  const active = policySchema.parse(JSON.parse(inForce.text))
  const nowMs = wallMs()
  const range = { tenantId, sinceMs: nowMs - days * dayMs }
  const reading = readOutcomeTable(clickhouse, { range, policy: active }, signal)
  let step = await reading.next()
  for (; !step.done; step = await reading.next()) {
    signal.throwIfAborted()
    yield { progress: step.value }
  }
  const read = step.value
  const table = read?.table ?? { events: [], rows: [], days: { older: 0, newer: 0 } }
  const answer = await compute({ active, table, options })
  const { name, version, policy_hash } = inForce
  yield {
    report: {
      tenant_id: tenantId,
      as_of: new Date(nowMs).toISOString(),
      since: new Date(range.sinceMs).toISOString(),
      newer_since: read === null ? null : new Date(read.splitMs).toISOString(),
      active: { name, version, policy_hash },
      sessions: read?.sessions ?? 0,
      left_out: read?.leftOut ?? 0,
      refused: 'refused' in answer ? answer.refused : null,
      suggestion: 'refused' in answer ? null : answer.suggestion,
    },
  }
}

async function compute(data: SuggestionWork): Promise<SuggestionAnswer> {
  const module = new URL('./suggestion-worker.ts', import.meta.url)
  const answer = await askThread<SuggestionAnswer>(module, {
    name: 'suggestion',
    data,
    limitMs: computeMaxMs,
    heapMiB,
  })
  if (typeof answer === 'object') return answer
  const why: Record<ThreadFault, string> = {
    time_limit: 'took too long',
    memory: 'needed too much memory',
    ended: 'failed',
  }
  throw unavailable(`The computation ${why[answer]}; try fewer days.`)
}
