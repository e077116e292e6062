/**
 * Keeps the messages of a pull consumer coming for as long as a process lives: begun anew whenever
 * the connection breaks, the broker falls silent, or the consumer or its stream was lost.
 */
import {
  type Consumer,
  ConsumerEvents,
  type ConsumerMessages,
  type JsMsg,
  type Subscription,
} from 'nats'
import { isConsumerMissing } from './jetstream-errors.ts'
import type { Log } from './log.ts'
import type { Nats } from './nats.ts'
import { pause } from './pause.ts'
import { clientMessagesMax, ensureStreams } from './streams.ts'

export type TakeOptions = {
  nats: Nats
  stream: string
  /** Which of the stream's consumers. */
  durable: string
  /** Ends it, in order: what is on its way by then is still handed over. */
  signal: AbortSignal
  /**
   * Takes a message, and when its stream was made; the next comes once it has resolved. What is not
   * asked for stays with the broker: the client asks again only as messages are taken.
   */
  take: (message: JsMsg, streamCreatedMs: number) => Promise<void>
  /** Told why messages cannot be taken now, or null once they can. */
  onFault: (fault: string | null) => void
  /** Told of each time that they could not. */
  onFailure: () => void
  log: Log
}

/**
 * In a cluster, what was asked of a consumer is forgotten with the server that led it, without a
 * word: two heartbeats that stay away tell. The client's own default is half a minute.
 */
const asking = { expires: 5_000, idle_heartbeat: 1_000 }
/** The longest pause before messages are asked for again after that failed. */
const retryMaxMs = 1_000
/** How often it is looked whether the broker is back. */
const connectedPollMs = 50
const cannotTake = 'messages cannot be taken'

/** Takes until `signal` says so. Never rejects. */
export async function takeMessages(options: TakeOptions): Promise<void> {
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
      const consumer = await unlessBroken(nats.jetstream.consumers.get(stream, durable), broken)
      onFault(null)
      failures = 0
      await takeUntilBroken(options, consumer, { createdMs: Date.parse(String(created)), broken })
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

type Standing = { createdMs: number; broken: AbortSignal }

/**
 * Takes for as long as the connection stands and the broker is heard. The client itself would go on
 * after that, but may ask no sooner than five seconds after a question that failed, and no longer
 * listens for heartbeats then.
 */
async function takeUntilBroken(
  options: TakeOptions,
  consumer: Consumer,
  { createdMs, broken }: Standing,
): Promise<void> {
  const signal = AbortSignal.any([options.signal, broken])
  let newest = 0
  const messages = await consumer.consume({
    max_messages: clientMessagesMax,
    ...asking,
    abort_on_missing_resource: true,
  })
  const end = () => endTaking(messages)
  signal.addEventListener('abort', end)
  if (signal.aborted) end()
  void endWhenSilent(messages)
  try {
    for await (const message of messages) {
      // What comes for the first time comes in order, unless the stream is another by now.
      if (!message.redelivered && message.seq <= newest) throw new Error('the stream was replaced')
      if (!message.redelivered) newest = message.seq
      await options.take(message, createdMs)
    }
  } finally {
    signal.removeEventListener('abort', end)
  }
}

/**
 * Ends taking without losing what is on its way: the client's own stop drops that, and it would
 * come again only after the ack wait. Draining the subscription ends the messages in order.
 */
function endTaking(messages: ConsumerMessages): void {
  const { sub } = messages as ConsumerMessages & { sub?: Subscription }
  if (sub === undefined || sub.isClosed()) void messages.close()
  else void sub.drain().catch(() => messages.close())
}

async function endWhenSilent(messages: ConsumerMessages): Promise<void> {
  for await (const { type } of await messages.status()) {
    if (type === ConsumerEvents.HeartbeatsMissed) endTaking(messages)
  }
}

async function restore({ nats, log }: TakeOptions): Promise<void> {
  try {
    await ensureStreams(nats)
  } catch (error) {
    log.error({ err: error }, 'the stream or its consumer cannot be made')
  }
}
