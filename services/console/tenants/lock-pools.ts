/**
 * Two pools of connections for locks: one for changes of tenants, which take seconds, one for
 * jobs, which may take hours, so that a rotation always finds a connection.
 */
import { changeLocksMax, jobLocksMax } from '#shared/core/base/limits/tenants.ts'
import type { Locks } from '#shared/io/postgres/named-lock-store.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import type { FaultTeller } from '#shared/io/process/connect-faults.ts'
import type { Log } from '#shared/io/process/log.ts'

export type LockPools = {
  /** Of rotations and other changes of a tenant. */
  changes: Locks
  /** Of erasures, backtests and the console's jobs. */
  jobs: Locks
  close: () => Promise<void>
}

/**
 * @param work the connections that the work under a lock is done on
 * @param teller says why none can be made; one of its own for each pool when left out
 */
export function createLockPools(
  url: string,
  { work, log, teller }: { work: Postgres; log: Log; teller?: FaultTeller },
): LockPools {
  const createHolders = (role: string, connectionsMax: number) =>
    createPostgres(url, {
      role,
      log,
      ...(teller === undefined ? {} : { teller }),
      connectionsMax,
      lockTimeoutMs: 10_000,
      statementTimeoutMs: 15_000,
      connectTimeoutMs: 10_000,
    })
  const changes = createHolders('console changes', changeLocksMax)
  const jobs = createHolders('console jobs', jobLocksMax)
  return {
    changes: { holders: changes, work },
    jobs: { holders: jobs, work },
    close: async () => {
      await Promise.all([changes.close(), jobs.close()])
    },
  }
}
