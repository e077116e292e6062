/** The incarnations of streams that were put back to an earlier copy, in Postgres. */
import {
  createStreamOffsets,
  type StreamIncarnation,
  type StreamOffsets,
} from '#shared/core/telemetry/streams/stream-offsets.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

/** The incarnations of one stream's name, with the number of the next one. */
export type StreamIncarnations = { all: readonly StreamIncarnation[]; nextNumber: number }

/** A stream at one moment, with the offsets of its messages. */
export type ObservedStream = {
  createdMs: number
  firstSequence: number
  lastSequence: number
  /** Servers that keep it. */
  replicas: number
  offsets: StreamOffsets
}

/** @throws PostgresUnavailableError */
export async function readIncarnations(db: Queryable, stream: string): Promise<StreamIncarnations> {
  const { rows } = await db.query<StreamIncarnation & { number: number }>(
    `select number, created_ms as "createdMs", first_sequence as "firstSequence",
       base_ms as "baseMs"
     from stream_incarnations where stream = $1 order by number`,
    [stream],
  )
  return { all: rows, nextNumber: (rows.at(-1)?.number ?? 0) + 1 }
}

/**
 * @returns false when another process took the number: read the incarnations again
 * @throws PostgresUnavailableError
 */
export async function addIncarnation(
  db: Queryable,
  { stream, number }: { stream: string; number: number },
  { createdMs, firstSequence, baseMs }: StreamIncarnation,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into stream_incarnations (stream, number, created_ms, first_sequence, base_ms)
     values ($1, $2, $3, $4, $5) on conflict (stream, number) do nothing`,
    [stream, number, createdMs, firstSequence, baseMs],
  )
  return rowCount === 1
}

/** @throws when the broker does not answer, or the stream does not exist */
export async function observeStream(
  nats: Nats,
  stream: string,
  { all }: StreamIncarnations,
): Promise<ObservedStream> {
  const { created, config, state } = await nats.manager.streams.info(stream)
  const createdMs = Date.parse(String(created))
  return {
    createdMs,
    firstSequence: state.first_seq,
    lastSequence: state.last_seq,
    replicas: config.num_replicas,
    offsets: createStreamOffsets(createdMs, all),
  }
}

/** Reads a stream and its incarnations. @throws when Postgres or the broker does not answer */
export async function readStream(
  nats: Nats,
  db: Queryable,
  stream: string,
): Promise<ObservedStream> {
  return observeStream(nats, stream, await readIncarnations(db, stream))
}
