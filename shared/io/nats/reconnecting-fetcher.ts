/**
 * Keeps the messages of a pull consumer coming for as long as a process lives: begun anew whenever
 * the connection breaks, the broker falls silent, or the consumer or its stream was lost.
 */

import type { Log } from '#shared/io/process/log.ts'
import { pause } from '#shared/io/process/pause.ts'
import type { Nats } from './connection.ts'
import { restoreConsumer } from './ensure-streams.ts'
import { type DeliveredMessage, type Fetcher, type FetchRequest, openFetcher } from './fetcher.ts'
import { isConsumerMissing } from './jetstream-errors.ts'

export type FetchingOptions = {
  nats: Nats
  stream: string
  /** Which of the stream's consumers. */
  durable: string
  /** Ends it, in order: what is on its way by then is still handed over. */
  signal: AbortSignal
  /** Takes a message as it comes; no more come than were asked for. */
  take: (message: DeliveredMessage) => void
  /** Told why messages cannot be taken now, or null once they can. */
  onFault: (fault: string | null) => void
  /** Told of each time that they could not. */
  onFailure: () => void
  log: Log
}

export type ReconnectingFetcher = {
  /**
   * Asks for messages; one question at a time. It resolves once as much has come as was asked for,
   * or nothing more is there, or `waits` was in vain, or it cannot be asked now. Where it waits and
   * cannot be asked, it waits for that too. Never rejects.
   */
  ask: (ask: FetchRequest) => Promise<void>
  /** Resolves when it has ended; all that was on its way has been handed over. */
  ended: Promise<void>
}

/** The longest pause before messages are asked for again after that failed. */
const retryMaxMs = 1_000
/** How often it is looked whether the broker is back. */
const connectedPollMs = 50
const cannotTake = 'messages cannot be taken'

/** Takes, as it is asked for, until `signal` says so. */
export function startFetching(options: FetchingOptions): ReconnectingFetcher {
  const { signal } = options
  let pull: Fetcher | null = null
  let changed = Promise.withResolvers<void>()
  const ended = keepPull(options, (current) => {
    pull = current
    changed.resolve()
    changed = Promise.withResolvers()
  }).finally(() => changed.resolve())
  return {
    ended,
    ask: async (ask) => {
      while (pull === null && ask.waits && !signal.aborted) await changed.promise
      if (!signal.aborted) await pull?.ask(ask)
    },
  }
}

/** Keeps a pull open for as long as `signal` lets it. Never rejects. */
async function keepPull(
  options: FetchingOptions,
  onPull: (pull: Fetcher | null) => void,
): Promise<void> {
  const { nats, stream, durable, signal, onFault } = options
  for (let failures = 0; !signal.aborted; ) {
    // What is asked of a broker that is away is lost, and that is known only seconds later.
    if (!nats.connected()) {
      onFault(cannotTake)
      await pause(connectedPollMs, signal)
      continue
    }
    const broken = nats.broken()
    try {
      const { created } = await unlessBroken(nats.manager.streams.info(stream), broken)
      await unlessBroken(nats.manager.consumers.info(stream, durable), broken)
      const pull = openFetcher({
        nats,
        stream,
        durable,
        streamCreatedMs: Date.parse(String(created)),
        onMessage: inOrder(options.take),
      })
      onFault(null)
      failures = 0
      onPull(pull)
      const why = await endOf(pull, AbortSignal.any([signal, broken]))
      onPull(null)
      await endPull(pull, signal)
      if (why !== null) throw why
    } catch (error) {
      if (signal.aborted) return
      onFault(cannotTake)
      if (broken.aborted) continue
      options.onFailure()
      if (failures === 0) options.log.warn({ err: error }, cannotTake)
      if (isConsumerMissing(error)) await restore(options)
      await pause(Math.min(retryMaxMs, 50 * 2 ** failures++), signal)
    }
  }
}

/** What comes for the first time comes in order, unless the stream is another by now. */
function inOrder(take: FetchingOptions['take']): FetchingOptions['take'] {
  let newest = 0
  return (message) => {
    if (message.deliveries === 1) {
      if (message.sequence <= newest) throw new Error('the stream was replaced')
      newest = message.sequence
    }
    take(message)
  }
}

/** @returns why a pull ended by itself; null when the broker fell silent, or `signal` said so */
function endOf(pull: Fetcher, signal: AbortSignal): Promise<Error | null> {
  const { promise, resolve } = Promise.withResolvers<Error | null>()
  const end = () => resolve(null)
  signal.addEventListener('abort', end)
  if (signal.aborted) end()
  void pull.ended.then(resolve)
  return promise.finally(() => signal.removeEventListener('abort', end))
}

/** Of a pull that works what is on its way is waited for: it would come again only much later. */
async function endPull(pull: Fetcher, signal: AbortSignal): Promise<void> {
  const closed = pull.close()
  if (signal.aborted) await closed
}

/**
 * What was asked over a connection that broke is never answered.
 * @throws at once when it breaks, else what `answer` rejects with
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

async function restore({ nats, durable, log }: FetchingOptions): Promise<void> {
  try {
    await restoreConsumer(nats, durable)
  } catch (error) {
    log.error({ err: error }, 'the stream or its consumer cannot be made')
  }
}
