/** What telemetry streams have that was not decided when a backup began, and the copy of it. */
import { mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { TelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readLowWatermark } from '#shared/io/nats/consume/low-watermark.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { readStream } from '#shared/io/telemetry/stream-incarnations.ts'
import { listTenantsOfStream } from '#shared/io/tenants/tenant-streams.ts'
import type { UndecidedFrom } from './backup-folder.ts'
import { copyMessages, streamsToCopy } from './stream-backup.ts'

export type Undecided = {
  /** By stream, the sequence from which on messages may be undecided. */
  sequences: Record<string, number>
  /** The same as stream offsets, for the manifest. */
  offsets: UndecidedFrom
}

/** Read it before the first store is copied. @throws when Postgres or the broker does not answer */
export async function readUndecided(nats: Nats, db: Postgres): Promise<Undecided> {
  const sequences: Record<string, number> = {}
  for (const one of nats.telemetryStreams) sequences[one.stream] = await findUndecided(nats, one)
  const [first, ...further] = await toOffsets(nats, db, sequences)
  if (first === undefined) throw new Error('NATS has no telemetry stream')
  const offsets = { undecided_from: first.undecided_from, further_streams: further }
  return { sequences, offsets }
}

async function findUndecided(nats: Nats, stream: TelemetryStream): Promise<number> {
  const { state } = await nats.manager.streams.info(stream.stream)
  return Math.max(state.first_seq, (await readLowWatermark(nats, stream)) + 1)
}

async function toOffsets(
  nats: Nats,
  db: Postgres,
  sequences: Undecided['sequences'],
): Promise<UndecidedFrom['further_streams']> {
  const found: UndecidedFrom['further_streams'] = []
  for (const { stream, number } of nats.telemetryStreams) {
    const { offsets } = await readStream(nats, db, stream)
    found.push({
      undecided_from: offsets.of(sequences[stream]!),
      tenants: await listTenantsOfStream(db, number),
    })
  }
  return found
}

/**
 * Copies the streams to a new folder, the last part of a backup.
 * @param sequences of `readUndecided`
 * @returns messages by stream
 */
export async function backupStreams(
  nats: Nats,
  { sequences, folder }: { sequences: Undecided['sequences']; folder: string },
): Promise<Record<string, number>> {
  await mkdir(folder, { mode: 0o700 })
  const messages: Record<string, number> = {}
  for (const stream of [...streamsToCopy, ...Object.keys(sequences)]) {
    const file = await open(join(folder, `${stream}.jsonl`), 'w', 0o600)
    try {
      const write = (line: string) => file.appendFile(line)
      messages[stream] = await copyMessages(nats, stream, {
        from: sequences[stream] ?? null,
        write,
      })
    } finally {
      await file.close()
    }
  }
  return messages
}
