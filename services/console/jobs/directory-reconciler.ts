/**
 * The directory reconciler: keeps the tenant directory equal to Postgres, undoes rotations whose
 * console is gone, and checks at start that MASTER_KEY opens the stored secrets. A failed round is
 * counted and tried again.
 */

import type { Queryable } from '#shared/io/postgres/postgres.ts'
import { ConfigError } from '#shared/io/process/config.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { pause } from '#shared/io/process/pause.ts'
import type { TenantProjection } from '#shared/io/tenants/directory/tenant-projection.ts'
import { findMasterKeyFault } from '#shared/io/tenants/sealed-secret-store.ts'
import type { Sealer } from '#shared/io/tenants/sealed-secrets.ts'
import { type RotationDeps, undoAbandonedRotations } from '../tenants/rotation.ts'

/** A lost projection is repaired within 1.5 s, a wrong entry within 3 s. */
const roundMs = 1_000

export type DirectoryReconciler = { stop: () => Promise<void> }

export type DirectoryReconcilerDeps = {
  rotation: RotationDeps
  projection: TenantProjection
  log: Log
  metrics: Metrics
}

/** Starts the rounds. */
export function startDirectoryReconciler(deps: DirectoryReconcilerDeps): DirectoryReconciler {
  const rounds = deps.metrics.counter(
    'di_directory_reconciler_rounds_total',
    'Rounds of comparing the tenant directory with Postgres',
    ['outcome'],
  )
  const stopped = new AbortController()
  let failing = false
  const run = async () => {
    while (!stopped.signal.aborted) {
      try {
        await undoAbandonedRotations(deps.rotation)
        await deps.projection.repair()
        rounds.inc({ outcome: 'done' })
        failing = false
      } catch (error) {
        rounds.inc({ outcome: 'failed' })
        if (!failing) deps.log.warn({ err: error }, 'the tenant directory cannot be compared now')
        failing = true
      }
      await pause(roundMs, stopped.signal)
    }
  }
  const running = run()
  return {
    stop: async () => {
      stopped.abort()
      await running
      deps.projection.stop()
    },
  }
}

/**
 * Opens one stored secret per master key in use.
 * @throws ConfigError when neither MASTER_KEY nor MASTER_KEY_PREVIOUS opens one of them
 */
export async function requireMasterKey(db: Queryable, sealer: Sealer): Promise<void> {
  const fault = await findMasterKeyFault(db, sealer)
  if (fault !== null) throw new ConfigError([fault])
}
