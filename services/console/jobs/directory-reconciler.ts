/**
 * The directory reconciler: keeps the tenant directory in NATS equal to Postgres, undoes rotations
 * whose console has stopped, and removes new credentials that were not fetched. It runs in every
 * console. A failed round is counted and repeated.
 */
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'
import type { TenantProjection } from '#shared/io/tenants/directory/tenant-projection.ts'
import { removeExpiredRotationKeys } from '#shared/io/tenants/rotation-store.ts'
import { type UndoDeps, undoAbandonedRotations } from '../tenants/rotation.ts'

/** A lost entry is repaired within 1.5 s, a wrong one within 3 s. */
const roundMs = 1_000

type DirectoryReconcilerDeps = {
  rotation: UndoDeps
  projection: TenantProjection
  log: Log
  metrics: Metrics
}

/** Starts the rounds: one per second. */
export function startDirectoryReconciler(deps: DirectoryReconcilerDeps): Poller {
  const rounds = deps.metrics.counter(
    'di_directory_reconciler_rounds_total',
    'Comparisons of the tenant directory with Postgres, by outcome',
    ['outcome'],
  )
  const round = async () => {
    await undoAbandonedRotations(deps.rotation)
    await removeExpiredRotationKeys(deps.rotation.locks.work)
    await deps.projection.repair()
    rounds.inc({ outcome: 'done' })
  }
  const poller = startPolling(round, {
    log: deps.log,
    everyMs: roundMs,
    failure: 'the tenant directory cannot be compared with Postgres',
    onFailure: () => rounds.inc({ outcome: 'failed' }),
  })
  return {
    stop: async () => {
      await poller.stop()
      deps.projection.stop()
    },
  }
}
