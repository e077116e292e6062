/** The part of the migration that is in NATS. */
import { MigrationError } from '#shared/io/migrations/migration-files.ts'
import { findOldServer, openNats } from '#shared/io/nats/connection.ts'
import { ensureStreamsOnceFormed } from '#shared/io/nats/streams/ensure-streams.ts'
import type { Log } from '#shared/io/process/log.ts'
import { within } from '#shared/io/process/pause.ts'
import type { NatsSettings } from '#shared/io/process/server-addresses.ts'

/**
 * Creates or updates the streams, consumers and buckets of this release.
 * @param limitMs how long to wait for a server that is starting, and for several to form a cluster
 * @returns the names of the streams that did not exist
 * @throws MigrationError when NATS does not answer in time, or is too old for this release
 */
export async function migrateStreams(
  settings: NatsSettings,
  { log, limitMs }: { log: Log; limitMs: number },
): Promise<string[]> {
  const link = openNats(settings, 'migrate', log)
  try {
    if (!(await within(link.opened, limitMs))) throw new MigrationError(`NATS ${link.fault()}`)
    const nats = await link.opened
    const old = findOldServer(nats)
    if (old !== null) throw new MigrationError(`NATS ${old}`)
    return await ensureStreamsOnceFormed(nats, { log, limitMs })
  } finally {
    await link.close()
  }
}
