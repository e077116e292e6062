/**
 * Forgets the names of unknown signals that operators freed. It asks Postgres only while a tenant
 * has as many names as it may, so usually never.
 */
import { signalNamesCheckMs } from '#shared/core/base/limits/telemetry.ts'
import type { Log } from '#shared/io/process/log.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'
import type { SignalPaths } from '#shared/io/telemetry/signal-paths.ts'

type FreeNamesOptions = {
  paths: Pick<SignalPaths, 'listFull' | 'free'>
  /** When the names of these tenants were last freed, of those where they were. */
  readFreed: (tenantIds: readonly string[]) => Promise<ReadonlyMap<string, string>>
  log: Log
}

/** Frees once for each time that the store names. */
export function createNameCheck({ paths, readFreed }: Omit<FreeNamesOptions, 'log'>) {
  /** The last time of each tenant, as it was read. */
  const known = new Map<string, string>()
  return async (): Promise<void> => {
    const full = paths.listFull()
    if (full.length === 0) return
    for (const [tenantId, freedAt] of await readFreed(full)) {
      if (known.get(tenantId) === freedAt) continue
      known.set(tenantId, freedAt)
      paths.free(tenantId)
    }
  }
}

/** Starts to check, until it is stopped. */
export function startNameCheck(options: FreeNamesOptions): Poller {
  return startPolling(createNameCheck(options), {
    log: options.log,
    everyMs: signalNamesCheckMs,
    failure: 'freed names of unknown signals cannot be read',
  })
}
