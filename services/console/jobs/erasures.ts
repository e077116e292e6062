/**
 * Runs the erasures that were requested: those of a tenant one after another, under a lease, of
 * all tenants two at once, tenants in turn. A lease ends with its console, so another one resumes
 * what a crash interrupted. What cannot be completed is tried again after a growing pause.
 */
import { erasuresAtOnceMax } from '#shared/core/base/limits/tenants.ts'
import { Problem } from '#shared/core/http/problem.ts'
import {
  type BegunErasure,
  beginErasure,
  failErasure,
  finishErasure,
  listDueTenants,
  postponeErasure,
  saveErasureProgress,
} from '#shared/io/erasure/erasure-job-store.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import { UnsealError } from '#shared/io/keys/sealed-secrets.ts'
import type { Lease } from '#shared/io/leases/leases.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'
import { tryTenantLease } from '#shared/io/tenants/tenant-lease.ts'
import { createErase, type Erase, type EraseDeps } from '../erasure/erase.ts'

export type ErasuresDeps = EraseDeps & {
  postgres: Postgres
  sealer: Sealer
  log: Log
  metrics: Metrics
}

export type Erasures = {
  /**
   * Makes an attempt at the tenant's oldest due erasure.
   * @returns false when none is due, or another console erases for this tenant
   */
  runNext: (tenantId: string, signal?: AbortSignal) => Promise<boolean>
  /** Runs what is due until it is stopped. */
  start: () => Poller
}

/** How often the job looks for erasures: a new one begins within this time. */
const pollMs = 500
/** Tenants in one look: more than ever have erasures at the same time, since each gets its turn. */
const dueTenantsMax = 1_000

type State = ErasuresDeps & {
  erase: Erase
  countOutcome: (outcome: 'done' | 'failed') => void
}

/** Creates the job of one console. */
export function createErasures(deps: ErasuresDeps): Erasures {
  const { postgres, log } = deps
  const outcomes = deps.metrics.counter(
    'di_erasures_total',
    'Attempts to erase a device or a user, by outcome',
    ['outcome'],
  )
  const state: State = {
    ...deps,
    erase: createErase(deps),
    countOutcome: (outcome) => outcomes.inc({ outcome }),
  }
  const runNext: Erasures['runNext'] = async (tenantId, signal = new AbortController().signal) => {
    const work = (lease: Lease) => runDue(state, lease, { tenantId, signal })
    return (await tryTenantLease(deps.leases, tenantId, work, 'erasure')) ?? false
  }
  const start = (): Poller => {
    const running = new Map<string, Promise<unknown>>()
    const failure = 'erasures cannot run'
    /** By tenant, the number of its last turn: many erasures of one do not delay another. */
    const turns = new Map<string, number>()
    let turn = 0
    const toTurn = (tenantId: string) => turns.get(tenantId) ?? 0
    const begin = (tenantId: string, signal: AbortSignal) => {
      turns.set(tenantId, ++turn)
      const run = runNext(tenantId, signal)
        .catch((error: unknown) => log.warn({ err: error, tenantId }, failure))
        .finally(() => running.delete(tenantId))
      running.set(tenantId, run)
    }
    const poller = startPolling(
      async (signal) => {
        const due = await listDueTenants(postgres, dueTenantsMax)
        for (const tenantId of due.sort((a, b) => toTurn(a) - toTurn(b))) {
          if (running.size < erasuresAtOnceMax && !running.has(tenantId)) begin(tenantId, signal)
        }
      },
      { log, everyMs: pollMs, failure },
    )
    return {
      stop: async () => {
        await poller.stop()
        await Promise.all(running.values())
      },
    }
  }
  return { runNext, start }
}

async function runDue(
  state: State,
  lease: Lease,
  { tenantId, signal }: { tenantId: string; signal: AbortSignal },
): Promise<boolean> {
  const begun = await beginErasure(lease, tenantId)
  if (begun === null) return false
  const { erasureId, kind, startedAt, before } = begun
  try {
    const id = state.sealer.unseal(begun.sealed, { erasureId, kind: 'subject' })
    const receipt = await state.erase({
      subject: { tenantId, kind, id },
      onProgress: (reached) => saveErasureProgress(lease, erasureId, reached),
      lease,
      startedAt,
      before,
      signal,
    })
    // One that was requested again meanwhile is due at once.
    if (await finishErasure(lease, begun, receipt)) state.countOutcome('done')
  } catch (error) {
    await recordFailure(state, lease, begun, { error, signal })
  }
  return true
}

async function recordFailure(
  { log, countOutcome }: State,
  lease: Lease,
  { erasureId, tenantId }: BegunErasure,
  { error, signal }: { error: unknown; signal: AbortSignal },
): Promise<void> {
  if (signal.aborted) {
    await postponeErasure(lease, erasureId, { problem: null, atOnce: true })
    return
  }
  countOutcome('failed')
  log.warn({ err: error, tenantId, erasureId }, 'an erasure could not be completed')
  if (error instanceof UnsealError) {
    const problem = 'MASTER_KEY does not open the id any more. Request the erasure again.'
    await failErasure(lease, erasureId, problem)
    return
  }
  const problem =
    error instanceof Problem ? error.message : 'It failed; see the log of the console.'
  await postponeErasure(lease, erasureId, { problem, atOnce: false })
}
