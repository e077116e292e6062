/**
 * Takes over what another console began and did not end: once its lease has expired, the round is
 * repeated here at once, however long this console would wait for its own next one.
 */
import { takeoverMs } from '#shared/core/base/limits/tenants.ts'
import { removeExpiredLeases } from '#shared/io/leases/expired-leases.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'

/** A round of each job by the name of its lease. */
export type Rounds = Readonly<Record<string, (signal: AbortSignal) => Promise<unknown>>>

/** Starts the job of one console. */
export function startTakeovers(deps: { postgres: Postgres; log: Log; rounds: Rounds }): Poller {
  const { postgres, log, rounds } = deps
  const repeat = async (name: string, signal: AbortSignal) => {
    const round = rounds[name]
    log.warn({ lease: name }, 'a lease has expired: its process has ended or hangs')
    try {
      await round?.(signal)
    } catch (error) {
      log.warn({ err: error, lease: name }, 'work could not be taken over yet')
    }
  }
  const running = new Set<Promise<void>>()
  const poller = startPolling(
    async (signal) => {
      for (const name of await removeExpiredLeases(postgres)) {
        // One that takes long does not delay the others.
        const run = repeat(name, signal).finally(() => running.delete(run))
        running.add(run)
      }
    },
    { log, everyMs: takeoverMs, failure: 'expired leases cannot be found', logFromFailure: 2 },
  )
  return {
    stop: async () => {
      await poller.stop()
      await Promise.all(running)
    },
  }
}
