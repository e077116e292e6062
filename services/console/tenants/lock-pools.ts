/**
 * Two connection pools for locks: one for changes of tenants, which take seconds, and one for jobs,
 * which may take hours. So a rotation always has a connection.
 */
import { changeLocksMax, jobLocksMax } from '#shared/core/base/limits/tenants.ts'
import { readsNewForm } from '#shared/io/keys/key-form.ts'
import type { Locks } from '#shared/io/postgres/named-lock-store.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import type { FaultReporter } from '#shared/io/process/connect-faults.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'

export type LockPools = {
  /** Of rotations and other changes of a tenant. */
  changes: Locks
  /** Of erasures, backtests and the console's jobs. */
  jobs: Locks
  close: () => Promise<void>
}

/**
 * @param options.name of the process or thread, for the names of the pools
 * @param options.work the connections that the work under a lock is done on
 * @param options.reporter says why none can be made; one of its own for each pool when left out
 */
export function createLockPools(
  url: string,
  options: { name: string; work: Postgres; log: Log; reporter?: FaultReporter; metrics?: Metrics },
): LockPools {
  const { name, work, ...shared } = options
  const createPool = (role: string, connectionsMax: number) =>
    createPostgres(url, {
      ...shared,
      role,
      nameEnd: readsNewForm,
      connectionsMax,
      lockTimeoutMs: 10_000,
      statementTimeoutMs: 15_000,
      connectTimeoutMs: 10_000,
    })
  const changes = createPool(`${name} change locks`, changeLocksMax)
  const jobs = createPool(`${name} job locks`, jobLocksMax)
  return {
    changes: { holders: changes, work },
    jobs: { holders: jobs, work },
    close: async () => {
      await Promise.all([changes.close(), jobs.close()])
    },
  }
}
