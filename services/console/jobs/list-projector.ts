/**
 * Projects changed shards of allow and deny lists to the edges, several times a second. It runs in
 * every console: two that project the same shard write the same, or one of them writes again.
 */
import { listProjectMs } from '#shared/core/base/limits/lists.ts'
import { unavailable } from '#shared/core/http/problem.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'
import { openDirectory } from '#shared/io/tenants/directory/directory-entries.ts'
import { projectChangedLists } from '#shared/io/tenants/directory/project-lists.ts'

type ListProjectorDeps = {
  postgres: Queryable
  findNats: () => Nats | null
  /** Its keys prove what is written. */
  sealer: Sealer
  log: Log
  metrics: Metrics
}

/** Starts the job of one console. */
export function startListProjector(deps: ListProjectorDeps): Poller {
  const { postgres, findNats, sealer, log, metrics } = deps
  const projected = metrics.counter(
    'di_list_shards_projected_total',
    'Shards of allow and deny lists that were written for the edges',
  )
  return startPolling(
    async () => {
      const nats = findNats()
      if (nats?.connected() !== true) throw unavailable('NATS is not connected.')
      const count = await projectChangedLists(() => openDirectory(nats, sealer), postgres)
      if (count > 0) projected.inc(count)
    },
    {
      log,
      everyMs: listProjectMs,
      failure: 'changes of allow and deny lists cannot be projected',
      // The connection at a start takes some moments.
      logFromFailure: 10,
    },
  )
}
