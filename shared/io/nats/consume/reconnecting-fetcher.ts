/**
 * Fetches messages from a durable consumer for as long as the process runs. It opens a new fetcher
 * whenever the connection breaks, the broker is silent, or the consumer or its stream was lost.
 */
import {
  createStreamOffsets,
  type StreamOffsets,
} from '#shared/core/telemetry/streams/stream-offsets.ts'
import type { Log } from '#shared/io/process/log.ts'
import { pause } from '#shared/io/process/pause.ts'
import type { Nats } from '../connection.ts'
import { isConsumerMissing } from '../jetstream-errors.ts'
import { type AckGate, createAckGate } from './ack-gate.ts'
import { type DeliveredMessage, type Fetcher, type FetchRequest, openFetcher } from './fetcher.ts'

type ReconnectingFetcherOptions = {
  nats: Nats
  stream: string
  durable: string
  /** Its abort ends the fetcher; messages on their way are still delivered. */
  signal: AbortSignal
  /** Reads the offsets of the stream's messages; by default they depend on its creation alone. */
  readOffsets?: ((stream: string) => Promise<StreamOffsets>) | undefined
  /** Called for each message; no more arrive than were requested. */
  onMessage: (message: DeliveredMessage) => void
  /** Called with the reason while messages cannot be fetched, and with null once they can. */
  onFault: (fault: string | null) => void
  /** Called for each failure. */
  onFailure: () => void
  log: Log
}

export type ReconnectingFetcher = {
  /**
   * Fetches; one call at a time. Resolves when the requested number has arrived, no message is
   * left, the wait is over, or the broker is away. With `waits` it also waits for the broker. Never
   * rejects.
   */
  fetch: (request: FetchRequest) => Promise<void>
  /** Resolves when it has ended and all messages on their way have been delivered. */
  ended: Promise<void>
}

/** The longest pause before the next attempt. */
const retryMaxMs = 1_000
/** How often to check whether the broker is back. */
const connectedPollMs = 50
const cannotFetch = 'messages cannot be fetched'
/** Neither is created here: a process that could create them could read and write every stream. */
const toMissing = ({ stream, durable }: { stream: string; durable: string }) =>
  `the stream ${stream} or its consumer ${durable} is missing: the console creates it`

/** Starts it; it runs until `signal` aborts. */
export function startFetching(options: ReconnectingFetcherOptions): ReconnectingFetcher {
  const { signal } = options
  let fetcher: Fetcher | null = null
  let changed = Promise.withResolvers<void>()
  const ended = keepOpen(options, (current) => {
    fetcher = current
    changed.resolve()
    changed = Promise.withResolvers()
  }).finally(() => changed.resolve())
  return {
    ended,
    fetch: async (request) => {
      while (fetcher === null && request.waits && !signal.aborted) await changed.promise
      if (!signal.aborted) await fetcher?.fetch(request)
    },
  }
}

/** Keeps a fetcher open until `signal` aborts. Never rejects. */
async function keepOpen(
  options: ReconnectingFetcherOptions,
  onFetcher: (fetcher: Fetcher | null) => void,
): Promise<void> {
  const { nats, signal, onFault } = options
  const acks = createAckGate(nats)
  for (let failures = 0; !signal.aborted; ) {
    // A request to an absent broker is lost, and the client notices only seconds later.
    if (!nats.connected()) {
      onFault(cannotFetch)
      await pause(connectedPollMs, signal)
      continue
    }
    const broken = nats.broken()
    broken.addEventListener('abort', acks.hold)
    try {
      const fetcher = await openOnce(options, acks, broken)
      onFault(null)
      failures = 0
      onFetcher(fetcher)
      const reason = await endOf(fetcher, AbortSignal.any([signal, broken]))
      onFetcher(null)
      const closed = fetcher.close()
      // When stopping, wait for messages on their way: otherwise they come again much later.
      if (signal.aborted) await closed
      if (reason !== null) throw reason
    } catch (error) {
      if (signal.aborted) return
      onFault(isConsumerMissing(error) ? toMissing(options) : cannotFetch)
      if (broken.aborted) continue
      options.onFailure()
      if (failures === 0) options.log.warn({ err: error }, cannotFetch)
      await pause(Math.min(retryMaxMs, 50 * 2 ** failures++), signal)
    }
  }
}

/** @throws when the stream or the consumer is missing, or the connection breaks */
async function openOnce(
  { nats, stream, durable, onMessage, ...options }: ReconnectingFetcherOptions,
  acks: AckGate,
  broken: AbortSignal,
): Promise<Fetcher> {
  const { readOffsets = (name) => readOffsetsOfCreation(nats, name) } = options
  const offsets = await unlessBroken(readOffsets(stream), broken)
  await unlessBroken(nats.manager.consumers.info(stream, durable), broken)
  acks.open(offsets.start)
  return openFetcher({
    nats,
    stream,
    durable,
    toOffset: offsets.of,
    respond: (reply, payload, isLast) => acks.respond(offsets.start, { reply, payload, isLast }),
    isPast: () => acks.isPast(offsets.start),
    onMessage: inOrder(onMessage),
  })
}

async function readOffsetsOfCreation(nats: Nats, stream: string): Promise<StreamOffsets> {
  const { created } = await nats.manager.streams.info(stream)
  return createStreamOffsets(Date.parse(String(created)), [])
}

/** First deliveries arrive in the order of the stream, unless another stream has replaced it. */
function inOrder(
  onMessage: ReconnectingFetcherOptions['onMessage'],
): ReconnectingFetcherOptions['onMessage'] {
  let newest = 0
  return (message) => {
    if (message.deliveries === 1) {
      if (message.sequence <= newest) throw new Error('the stream was replaced')
      newest = message.sequence
    }
    onMessage(message)
  }
}

/** @returns why the fetcher ended; null when the broker is silent or `signal` aborted */
function endOf(fetcher: Fetcher, signal: AbortSignal): Promise<Error | null> {
  const { promise, resolve } = Promise.withResolvers<Error | null>()
  const end = () => resolve(null)
  signal.addEventListener('abort', end)
  if (signal.aborted) end()
  void fetcher.ended.then(resolve)
  return promise.finally(() => signal.removeEventListener('abort', end))
}

/**
 * Waits for an answer. One that is requested over a broken connection never arrives.
 * @throws at once when the connection breaks, else what `answer` rejects with
 */
async function unlessBroken<T>(answer: Promise<T>, broken: AbortSignal): Promise<T> {
  const { promise: ended, reject } = Promise.withResolvers<never>()
  const end = () => reject(new Error('the connection broke'))
  if (broken.aborted) end()
  broken.addEventListener('abort', end)
  try {
    return await Promise.race([answer, ended])
  } finally {
    broken.removeEventListener('abort', end)
  }
}
