/**
 * Looks after the keys that sign verdicts: makes the first ones, gives the edges the current one
 * again when they lost it, ends a rotation whose console has stopped, and removes keys of which no
 * token counts any more. It runs in every console: two that do the same write the same.
 */
import { verdictKeysRoundMs } from '#shared/core/base/limits/tenants.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'
import {
  ensureVerdictKeys,
  removeExpiredVerdictKeys,
} from '#shared/io/verdicts/verdict-key-store.ts'
import { settleVerdictKeys } from '../keys/manage-verdict-keys.ts'
import type { KeyedDirectoryWriter } from '../tenants/directory.ts'

type VerdictKeysDeps = {
  postgres: Queryable
  directory: KeyedDirectoryWriter
  sealer: Sealer
  log: Log
  metrics: Metrics
  /** The wall clock. */
  wallMs: () => number
}

/** Starts the job of one console. */
export function startVerdictKeys(deps: VerdictKeysDeps): Poller {
  const { postgres, directory, sealer, log, metrics, wallMs } = deps
  const projected = metrics.counter(
    'di_verdict_keys_projected_total',
    'Times that the key of verdicts was written for the edges, after a change or a loss',
  )
  return startPolling(
    async () => {
      await ensureVerdictKeys(postgres, sealer, wallMs())
      await removeExpiredVerdictKeys(postgres, wallMs())
      // Its own check says that NATS is away.
      if (directory.connected() && (await settleVerdictKeys(deps))) projected.inc()
    },
    {
      log,
      everyMs: verdictKeysRoundMs,
      failure: 'the keys of verdicts cannot be looked after',
      // The connections at a start take some moments.
      logFromFailure: 10,
    },
  )
}
