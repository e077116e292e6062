/**
 * The directory reconciler: keeps the tenant directory in NATS equal to Postgres, undoes rotations
 * whose console has stopped, removes new credentials that were not fetched, and gives tenants that
 * are older than install roots their first one. It runs in every
 * console. A failed round is counted and repeated.
 */
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'
import type { TenantProjection } from '#shared/io/tenants/directory/tenant-projection.ts'
import { removeExpiredRotationKeys } from '#shared/io/tenants/rotation-store.ts'
import { addAddressKeys } from '../tenants/addresses/address-keys.ts'
import type { Maker } from '../tenants/credentials.ts'
import { addFirstRoots } from '../tenants/installs/install-roots.ts'
import { type UndoDeps, undoAbandonedRotations } from '../tenants/rotation.ts'

/** A lost entry is repaired within 1.5 s, a wrong one within 3 s. */
const roundMs = 1_000

/**
 * How often it looks for tenants without an install root or an address key: they come with an
 * upgrade, or with a backup of an older release.
 */
const rootsEveryMs = 60_000

type DirectoryReconcilerDeps = {
  rotation: UndoDeps
  /** Makes first install roots and address keys. */
  maker: Maker
  /** The monotonic clock. */
  nowMs: () => number
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
  let rootsDueMs = 0
  const addRoots = async () => {
    if (deps.nowMs() < rootsDueMs || !deps.rotation.directory.connected()) return
    const making = { ...deps.rotation, ...deps.maker }
    const roots = await addFirstRoots(making)
    const keys = await addAddressKeys(making)
    // The next round goes on where there are more.
    if (roots + keys === 0) rootsDueMs = deps.nowMs() + rootsEveryMs
    if (roots > 0) deps.log.info({ added: roots }, 'tenants got their first install root')
    if (keys > 0) deps.log.info({ added: keys }, 'tenants got the key of their addresses')
  }
  const round = async () => {
    await undoAbandonedRotations(deps.rotation)
    await removeExpiredRotationKeys(deps.rotation.leases.work)
    await addRoots()
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
