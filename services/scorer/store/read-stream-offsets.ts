/**
 * Reads the offsets of a telemetry stream, and notices when its files were put back to an earlier
 * copy: the newest message that a scorer recorded is then missing, or another message has its
 * sequence. Repeated sequences get new offsets, so no two events share one. What the copy still
 * holds keeps its offsets, so storing it again changes nothing.
 */
import {
  type StreamOffsets,
  toNextIncarnation,
} from '#shared/core/telemetry/streams/stream-offsets.ts'
import type { TelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { isMessageGone } from '#shared/io/nats/jetstream-errors.ts'
import { countOfStream } from '#shared/io/nats/streams/stream-metrics.ts'
import { pendingMax } from '#shared/io/nats/streams/telemetry-stream.ts'
import { type Postgres, PostgresUnavailableError } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import {
  type RecordedMessage,
  readNewestMessage,
} from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import {
  addIncarnation,
  type ObservedStream,
  observeStream,
  readIncarnations,
  type StreamIncarnations,
} from '#shared/io/telemetry/stream-incarnations.ts'

type StreamOffsetsOptions = {
  nats: Nats
  stream: TelemetryStream
  clickhouse: Clickhouse
  postgres: Postgres
  log: Log
  metrics: Metrics
  /** The wall clock, in ms since 1970, and the monotonic clock. */
  wallMs: () => number
  nowMs: () => number
}

/**
 * How long a stream on several servers may lack messages that were stored: a server that is cut off
 * answers for the stream until it notices, after ten seconds, and a new leader needs a moment.
 */
const behindMaxMs = 20_000

/**
 * @returns a function that reads the offsets of a stream's messages. Call it before messages are
 *   fetched over a new connection. It throws when a store does not answer.
 */
export function createStreamOffsetsReader(
  options: StreamOffsetsOptions,
): () => Promise<StreamOffsets> {
  const { nats, clickhouse, postgres, log, metrics, wallMs, nowMs } = options
  const { stream } = options.stream
  const countPutBack = countOfStream(
    metrics,
    options,
    'di_stream_put_back_total',
    'Times that the telemetry stream was found put back to an earlier copy',
  )
  const read = createIncarnationsReader(postgres, stream)
  /** Since when the stream is behind; null while it is not. */
  let behindSinceMs: number | null = null
  return async () => {
    for (;;) {
      const before = await observeStream(nats, stream, await read())
      const newest = await readNewestMessage(clickhouse, {
        stream: options.stream.number,
        fromOffset: before.offsets.of(before.firstSequence),
      })
      const incarnations = await read()
      const observed = await observeStream(nats, stream, incarnations)
      // Another scorer has just begun an incarnation.
      if (observed.offsets.start !== before.offsets.start) continue
      const state = newest === null ? 'same' : await compare(nats, stream, observed, newest)
      if (newest === null || state === 'same') {
        behindSinceMs = null
        return observed.offsets
      }
      if (state === 'behind' && observed.replicas > 1) {
        behindSinceMs ??= nowMs()
        if (nowMs() - behindSinceMs < behindMaxMs) {
          throw new Error('the stream lacks messages that were stored')
        }
      }
      const { createdMs } = observed
      const { nextNumber: number } = incarnations
      const firstSequence = await findFirstAfter(nats, options.stream, observed, newest.publishedMs)
      const next = toNextIncarnation(
        { createdMs, firstSequence },
        { newestOffset: newest.streamOffset, pendingMax, nowMs: wallMs() },
      )
      if (!(await addIncarnation(postgres, { stream, number }, next))) continue
      countPutBack()
      log.error(
        { stream, first_sequence: firstSequence, newest_recorded: new Date(newest.publishedMs) },
        'the stream was put back to an earlier copy: messages that it lost are not stored unless ' +
          'they were before, and new messages get new offsets',
      )
    }
  }
}

/**
 * While Postgres is away, storing goes on with the incarnations that are known. If one is missing,
 * the newest recorded message is not found, and then Postgres is needed.
 */
function createIncarnationsReader(postgres: Postgres, stream: string) {
  let known: StreamIncarnations = { all: [], nextNumber: 1 }
  return async (): Promise<StreamIncarnations> => {
    try {
      known = await readIncarnations(postgres, stream)
    } catch (error) {
      if (!(error instanceof PostgresUnavailableError)) throw error
    }
    return known
  }
}

/**
 * Compares a stream with the newest recorded message: it has the message, is behind it, or has
 * another one in its place.
 */
async function compare(
  nats: Nats,
  stream: string,
  { offsets, lastSequence }: ObservedStream,
  newest: RecordedMessage,
): Promise<'same' | 'behind' | 'other'> {
  const sequence = offsets.findSequence(newest.streamOffset)
  if (sequence === null) return 'same'
  if (sequence > lastSequence) return 'behind'
  try {
    const { time } = await nats.manager.streams.getMessage(stream, { seq: sequence })
    return time.getTime() === newest.publishedMs ? 'same' : 'other'
  } catch (error) {
    // Trimming and erasure remove only messages that were stored since the last such check.
    if (isMessageGone(error)) return 'same'
    throw error
  }
}

/** @returns the sequence of the first message that the stream stored after an instant */
async function findFirstAfter(
  nats: Nats,
  stream: TelemetryStream,
  { firstSequence, lastSequence }: ObservedStream,
  afterMs: number,
): Promise<number> {
  let low = firstSequence
  let high = lastSequence + 1
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (await isNextAfter(nats, stream, middle, afterMs)) high = middle
    else low = middle + 1
  }
  return low
}

/** Whether the first message from a sequence on came after an instant, or there is none. */
async function isNextAfter(
  nats: Nats,
  { stream, subject }: TelemetryStream,
  sequence: number,
  afterMs: number,
) {
  // The client's type lacks `next_by_subj`, which skips removed messages.
  const query = { seq: sequence, next_by_subj: subject }
  try {
    return (await nats.manager.streams.getMessage(stream, query)).time.getTime() > afterMs
  } catch (error) {
    if (isMessageGone(error)) return true
    throw error
  }
}
