/** The part of the migration that is in NATS. */
import { MigrationError } from '#shared/io/migrations/migration-files.ts'
import { findOldServer, openNats } from '#shared/io/nats/connection.ts'
import { ensureStreamsOnceFormed, isEmptyCluster } from '#shared/io/nats/streams/ensure-streams.ts'
import type { Log } from '#shared/io/process/log.ts'
import { within } from '#shared/io/process/pause.ts'
import type { NatsSettings } from '#shared/io/process/server-addresses.ts'

type StreamOptions = {
  log: Log
  /** How long to wait for a server that is starting, and for several to form a cluster. */
  limitMs: number
  /** Whether ClickHouse has telemetry, so that there were streams before. */
  hadStreams: boolean
  /** Whether a cluster without any stream is expected. */
  mayBeNew: boolean
}

const emptyCluster =
  'These NATS servers are a cluster and have no streams, although ClickHouse has telemetry. ' +
  'Nothing was created.\n' +
  'If the store of a single server was started as a member of this cluster, that server removes ' +
  'all streams in it 30 seconds later, with what was accepted and not decided: stop it now. If ' +
  'the store, or a copy, still has its streams, start it as a single server, without `cluster`, ' +
  'and follow "From one server to three" in deploy/cluster/README.md: it is then decided.\n' +
  'If the streams are to be new: npm run migrate -- --new-streams'

/**
 * Creates or updates the streams, consumers and buckets of this release.
 * @returns the names of the streams that did not exist
 * @throws MigrationError when NATS does not answer in time, is too old for this release, or is a
 *   cluster that lost its streams
 */
export async function migrateStreams(
  settings: NatsSettings,
  { log, limitMs, hadStreams, mayBeNew }: StreamOptions,
): Promise<string[]> {
  const link = openNats(settings, 'migrate', log)
  try {
    if (!(await within(link.opened, limitMs))) throw new MigrationError(`NATS ${link.fault()}`)
    const nats = await link.opened
    const old = findOldServer(nats)
    if (old !== null) throw new MigrationError(`NATS ${old}`)
    if (hadStreams && !mayBeNew && (await isEmptyCluster(nats, { log, limitMs }))) {
      throw new MigrationError(emptyCluster)
    }
    return await ensureStreamsOnceFormed(nats, { log, limitMs })
  } finally {
    await link.close()
  }
}
