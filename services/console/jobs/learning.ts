/**
 * Learns by which parameters phones are recognised: once a day the console estimates them for every
 * tenant with enough new installs, and writes a version that holds an hour later. A lease lets one
 * console learn at a time; an interrupted day goes on with the tenants that have none yet.
 */
import { setImmediate } from 'node:timers/promises'
import { dayMs } from '#shared/core/base/instants.ts'
import { learnedDays, tenantPhonesMin } from '#shared/core/base/limits/entities.ts'
import { isEnough, learnInRounds } from '#shared/core/identity/learn-parameters.ts'
import { type IdentityParameters, toInitialParameters } from '#shared/core/identity/parameters.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import {
  listLearning,
  observeInstalls,
  readRecentInstalls,
} from '#shared/io/identity/new-installs-store.ts'
import {
  addParameters,
  findLatestParameters,
  listWithoutVersion,
} from '#shared/io/identity/parameters-store.ts'
import { type Lease, type Leases, withLease } from '#shared/io/leases/leases.ts'
import type { Log } from '#shared/io/process/log.ts'
import { type Metrics, startAtZero } from '#shared/io/process/metrics.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'

type LearningDeps = {
  leases: Leases
  clickhouse: Clickhouse
  log: Log
  metrics: Metrics
  wallMs: () => number
}

export type Learning = {
  /**
   * Learns for every tenant that has no version of this day.
   * @returns `elsewhere` when another console has the lease, `failed` when it must be repeated
   */
  runRound: (signal?: AbortSignal) => Promise<'not_due' | 'elsewhere' | 'done' | 'failed'>
  /** Runs rounds until it is stopped. */
  start: () => Poller
}

const pollMs = 600_000
const outcomes = ['written', 'too_little', 'failed'] as const
type Outcome = (typeof outcomes)[number]

type State = LearningDeps & {
  count: (outcome: Outcome) => void
  /** The start of the day whose round this console has finished. */
  doneDayMs: number | null
}

/** Creates the job of one console. */
export function createLearning(deps: LearningDeps): Learning {
  const counter = deps.metrics.counter(
    'di_identity_parameters_total',
    'Tenants whose parameters of phones were estimated, by outcome',
    ['outcome'],
  )
  startAtZero(
    counter,
    outcomes.map((outcome) => ({ outcome })),
  )
  const state: State = { ...deps, count: (outcome) => counter.inc({ outcome }), doneDayMs: null }
  const runRound: Learning['runRound'] = async (signal = new AbortController().signal) => {
    const dayStartMs = Math.floor(deps.wallMs() / dayMs) * dayMs
    if (state.doneDayMs === dayStartMs) return 'not_due'
    const learn = (lease: Lease) => learnAll(state, { lease, signal, dayStartMs })
    return (await withLease(deps.leases, 'learning', learn)) ?? 'elsewhere'
  }
  const failure = 'parameters of phones cannot be learned'
  return {
    runRound,
    start: () => startPolling(runRound, { log: deps.log, everyMs: pollMs, failure }),
  }
}

type Round = { lease: Lease; signal: AbortSignal; dayStartMs: number }

async function learnAll(state: State, round: Round): Promise<'done' | 'failed'> {
  const { lease, signal, dayStartMs } = round
  const sinceMs = state.wallMs() - learnedDays * dayMs
  const learning = new Set(await listLearning(state.clickhouse, sinceMs))
  const due = await listWithoutVersion(lease, dayStartMs)
  let failed = false
  for (const tenantId of due.filter((one) => learning.has(one))) {
    if (signal.aborted) return 'failed'
    try {
      state.count(await learnOf(state, lease, { tenantId, sinceMs }))
    } catch (error) {
      // A tenant whose rows cannot be read must not keep the others from learning.
      state.log.warn({ err: error, tenantId }, 'a tenant’s parameters cannot be learned')
      state.count('failed')
      failed = true
    }
  }
  if (failed) return 'failed'
  state.doneDayMs = dayStartMs
  return 'done'
}

async function learnOf(
  { clickhouse, log }: State,
  lease: Lease,
  { tenantId, sinceMs }: { tenantId: string; sinceMs: number },
): Promise<Outcome> {
  const recent = await readRecentInstalls(clickhouse, { tenantId, sinceMs })
  const observed = await observeInstalls(clickhouse, tenantId, recent)
  if (!isEnough(observed)) return 'too_little'
  const phones = Math.max(tenantPhonesMin, recent.phones)
  const before = (await findLatestParameters(lease, tenantId)) ?? toInitialParameters(phones)
  const parameters = await pausing(learnInRounds(before, observed, recent.phones))
  const { version, returning } = parameters
  if (!(await addParameters(lease, { tenantId, parameters }))) {
    throw new Error(`version ${version} was written by another`)
  }
  log.info(
    { tenantId, version, returning, installs: observed.length, phones: parameters.phones },
    'learned the parameters of phones',
  )
  return 'written'
}

/** Lets the other jobs of the thread go on between rounds of some ten milliseconds. */
async function pausing(
  rounds: Generator<undefined, IdentityParameters>,
): Promise<IdentityParameters> {
  for (;;) {
    const round = rounds.next()
    if (round.done) return round.value
    await setImmediate()
  }
}
