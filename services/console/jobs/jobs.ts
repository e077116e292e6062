/**
 * The console's background jobs, all in one thread of their own. A lease lets one of any number of
 * consoles run each of them, and another one takes over from one that hangs. The stream keeper, the
 * directory reconciler, the list projector and the job of verdict keys run in every console.
 */
import { randomBytes } from 'node:crypto'
import { createErasureStore } from '#shared/io/erasure/erasure-store.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import { startStreamKeeper } from '#shared/io/nats/streams/stream-keeper.ts'
import type { StopSteps } from '#shared/io/process/lifecycle.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import type { TenantProjection } from '#shared/io/tenants/directory/tenant-projection.ts'
import type { Connections } from '../connections.ts'
import type { KeyedDirectoryWriter } from '../tenants/directory.ts'
import { countRotations } from '../tenants/rotation.ts'
import { startBulkJobs } from './bulk-jobs.ts'
import { startCases } from './cases.ts'
import { startDirectoryReconciler } from './directory-reconciler.ts'
import { createErasures } from './erasures.ts'
import { createHourlyCounts } from './hourly-counts.ts'
import { createLearning } from './learning.ts'
import { startListProjector } from './list-projector.ts'
import { createPrevalenceSpikes } from './prevalence-spikes.ts'
import { createReconciliation } from './reconciliation/reconciliation.ts'
import { createRemovals } from './removals.ts'
import { createReplication } from './replication.ts'
import { createRetention } from './retention.ts'
import { startTakeovers } from './takeovers.ts'
import { startVerdictKeys } from './verdict-keys.ts'

type JobDeps = {
  steps: StopSteps
  directory: KeyedDirectoryWriter
  projection: TenantProjection
  sealer: Sealer
  connections: Connections
  log: Log
  metrics: Metrics
  /** The monotonic clock, and the wall clock. */
  nowMs: () => number
  wallMs: () => number
}

export type Jobs = {
  /** What waits for an operator to recover it. */
  countPending: () => number
}

/** Starts every job; a stop ends them, the last first. */
export function startJobs(deps: JobDeps): Jobs {
  const { steps, directory, projection, sealer, connections, ...shared } = deps
  const { postgres, clickhouse, longClickhouse, leases, reconciliation } = connections
  const onOutcome = countRotations(deps.metrics)
  const rotation = { ...shared, leases, directory, onOutcome }
  const common = { ...shared, postgres, clickhouse, leases }
  const removals = createRemovals({
    ...common,
    clickhouse: longClickhouse,
    sealer,
    findNats: connections.findNats,
  })
  const long = { ...common, clickhouse: longClickhouse }
  /** By the names of their leases. */
  const leased = {
    retention: createRetention(common),
    replication: createReplication(common),
    'prevalence spikes': createPrevalenceSpikes(long),
    'hourly counts': createHourlyCounts(long),
    learning: createLearning(long),
    removals,
  }
  const jobs = {
    'stream keeper': () => startStreamKeeper({ ...shared, findNats: connections.findNats }),
    'directory reconciler': () =>
      startDirectoryReconciler({ ...shared, rotation, projection, maker: { sealer, randomBytes } }),
    'list projector': () =>
      startListProjector({ ...common, sealer, findNats: connections.findNats }),
    'verdict keys': () => startVerdictKeys({ ...common, directory, sealer }),
    'bulk jobs': () => startBulkJobs(common),
    cases: () => startCases(common),
    erasures: () =>
      createErasures({
        ...common,
        sealer,
        clickhouse: longClickhouse,
        createStore: createErasureStore,
        findNats: connections.findNats,
      }).start(),
    reconciliation: () =>
      createReconciliation({
        ...common,
        findNats: connections.findNats,
        store: reconciliation,
        reportProver: sealer.proverOf('edge report'),
      }).start(),
  }
  for (const [name, { start }] of Object.entries(leased)) steps.onStop(name, start().stop)
  const rounds = Object.fromEntries(
    Object.entries(leased).map(([name, job]) => [name, job.runRound]),
  )
  steps.onStop('takeovers', startTakeovers({ ...common, rounds }).stop)
  for (const [name, start] of Object.entries(jobs)) steps.onStop(name, start().stop)
  const countPending = () => ({ tenant: projection.countAhead(), ...removals.countPending() })
  observePending(deps.metrics, countPending)
  return {
    countPending: () => Object.values(countPending()).reduce((sum, count) => sum + count, 0),
  }
}

function observePending(metrics: Metrics, read: () => Record<string, number>): void {
  metrics.gauge(
    'di_recovery_pending',
    'What a Postgres that was put back has forgotten and an operator must recover, by kind',
    {
      labels: ['kind'],
      collect() {
        for (const [kind, count] of Object.entries(read())) this.set({ kind }, count)
      },
    },
  )
}
