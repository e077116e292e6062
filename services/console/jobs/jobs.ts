/**
 * The console's background jobs. A lock lets one of any number of consoles run each of them; the
 * directory reconciler runs in every console.
 */
import type { Lifecycle } from '#shared/io/process/lifecycle.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import type { TenantProjection } from '#shared/io/tenants/directory/tenant-projection.ts'
import type { Sealer } from '#shared/io/tenants/sealed-secrets.ts'
import type { Connections } from '../connections.ts'
import type { RotationDeps } from '../tenants/rotation.ts'
import { startBulkDispositions } from './bulk-dispositions.ts'
import { startDirectoryReconciler } from './directory-reconciler.ts'
import { createPrevalenceSpikes } from './prevalence-spikes.ts'
import { createReconciliation } from './reconciliation/reconciliation.ts'
import { createReplication } from './replication.ts'
import { createRetention } from './retention.ts'

type JobDeps = {
  lifecycle: Lifecycle
  rotation: RotationDeps
  projection: TenantProjection
  sealer: Sealer
  connections: Connections
  log: Log
  metrics: Metrics
  /** The monotonic clock, and the wall clock. */
  nowMs: () => number
  wallMs: () => number
}

/** Starts every job; a stop of the process ends them, the last first. */
export function startJobs(deps: JobDeps): void {
  const { lifecycle, rotation, projection, sealer, connections, ...shared } = deps
  const { postgres, clickhouse, mutationClickhouse, jobLocks, reconciliation } = connections
  const common = { ...shared, postgres, clickhouse, locks: jobLocks }
  const jobs = {
    'directory reconciler': () => startDirectoryReconciler({ ...shared, rotation, projection }),
    'bulk dispositions': () => startBulkDispositions(common),
    retention: () => createRetention(common).start(),
    replication: () => createReplication(common).start(),
    'prevalence spikes': () =>
      createPrevalenceSpikes({ ...common, clickhouse: mutationClickhouse }).start(),
    reconciliation: () =>
      createReconciliation({
        ...common,
        findNats: connections.findNats,
        store: reconciliation,
        reportProver: sealer.proverOf('edge report'),
      }).start(),
  }
  for (const [name, start] of Object.entries(jobs)) lifecycle.onStop(name, start().stop)
}
