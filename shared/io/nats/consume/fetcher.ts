/**
 * Fetches messages from a pull consumer over one connection, by the protocol of nats-server's
 * ADR-13. The client's own `fetch` waits at least a second when the consumer has too few messages,
 * and its `consume` leases each message as it is published, long before its batch begins.
 */
import { type Msg, headers as newHeaders, type Subscription } from 'nats'
import { batchProofHeader, tracedEventsHeader } from '#shared/core/telemetry/nats-names.ts'
import type { Nats } from '../connection.ts'

/** A delivered message. This process leases it until it acknowledges or rejects it. */
export type DeliveredMessage = {
  data: Uint8Array
  /** The proof of origin; empty when the sender gave none. */
  proof: string
  /** The header that names its traced events; empty when there are none. */
  tracedEvents: string
  sequence: number
  /** Of its first event. It is unique for good; a sequence may be repeated. */
  streamOffset: number
  /** When the stream stored it, by the server's clock, in ms since 1970. */
  publishedMs: number
  /** Number of deliveries; 1 for the first. */
  deliveries: number
  /** Whether its stream was put back or replaced since it was delivered. */
  isPast: () => boolean
  ack: () => void
  /** Extends the lease. */
  working: () => void
  /** Rejects it: it is delivered again, after `delayMs` at the earliest. */
  nak: (delayMs: number) => void
}

export type FetchRequest = {
  messages: number
  /** A single message may be larger. */
  bytes: number
  /** Whether to wait up to five seconds when there is no message. */
  waits: boolean
}

export type Fetcher = {
  /**
   * Fetches; one call at a time. Resolves when the requested number has arrived, no message is
   * left, the wait is over, or the fetcher has ended. Never rejects.
   */
  fetch: (request: FetchRequest) => Promise<void>
  /** Resolves when the fetcher has ended: null when the broker is silent, else the reason. */
  ended: Promise<Error | null>
  /** Closes it; messages on their way are still delivered. */
  close: () => Promise<void>
}

type FetcherOptions = {
  nats: Nats
  stream: string
  durable: string
  /** The offset of a message's first event. */
  toOffset: (sequence: number) => number
  /** Sends a response to a delivery. @param isLast the message needs no further response */
  respond: (reply: string, payload: Uint8Array, isLast: boolean) => void
  /** Whether the stream was put back or replaced since this fetcher was opened. */
  isPast: () => boolean
  /** Called for each message. @throws when the message cannot belong to this stream */
  onMessage: (message: DeliveredMessage) => void
}

/** A server that dies forgets its fetch requests. Missing heartbeats reveal it. */
const waitMaxMs = 5_000
const heartbeatMs = 1_000
const silentMaxMs = 2_200

/** The broker counts a message's subject and headers as bytes, too. */
const envelopeBytesMax = 64 * 1024

type OpenRequest = { reply: string; left: number; end: () => void }

/** Subscribes to a consumer; no message arrives before the first `fetch`. */
export function openFetcher(options: FetcherOptions): Fetcher {
  const { connection } = options.nats
  const inbox = options.nats.newInbox()
  const { promise: ended, resolve: resolveEnded } = Promise.withResolvers<Error | null>()
  let open: OpenRequest | null = null
  let requests = 0
  let heardMs = 0
  let isOver = false
  const end = (reason: Error | null) => {
    isOver = true
    open?.end()
    resolveEnded(reason)
  }
  const receive = (message: Msg) => {
    heardMs = performance.now()
    if (!message.subject.startsWith(inbox)) {
      options.onMessage(toDelivered(message, options))
      if (open !== null && --open.left === 0) open.end()
      return
    }
    // A status of an earlier request does not concern the open one.
    if (message.subject !== open?.reply) return
    const status = toStatus(message)
    if (status === 'end') open.end()
    else if (status !== 'heartbeat') end(status)
  }
  const subscription = connection.subscribe(`${inbox}.*`, {
    callback: (error, message) => {
      try {
        if (error !== null) throw error
        receive(message)
      } catch (failure) {
        end(failure as Error)
      }
    },
  })
  void subscription.closed.then(() => end(null))
  const fetch = async (request: FetchRequest) => {
    if (isOver) return
    const { promise: answered, resolve } = Promise.withResolvers<void>()
    open = { reply: `${inbox}.${++requests}`, left: request.messages, end: resolve }
    heardMs = performance.now()
    const watchdog = setInterval(() => {
      if (performance.now() - heardMs > silentMaxMs) end(null)
    }, heartbeatMs)
    try {
      sendRequest(options, request, open.reply)
      await answered
    } catch (error) {
      end(error as Error)
    } finally {
      clearInterval(watchdog)
      open = null
    }
  }
  return {
    ended,
    fetch,
    close: () => {
      // End an open fetch at once: the broker may not answer.
      end(null)
      return closeInOrder(subscription)
    },
  }
}

function sendRequest(
  { nats, stream, durable }: FetcherOptions,
  { messages, bytes, waits }: FetchRequest,
  reply: string,
): void {
  const messageBytesMax = (nats.connection.info?.max_payload ?? 1024 ** 2) + envelopeBytesMax
  const request = {
    batch: messages,
    max_bytes: Math.max(bytes, messageBytesMax),
    ...(waits
      ? { expires: waitMaxMs * 1e6, idle_heartbeat: heartbeatMs * 1e6 }
      : { no_wait: true }),
  }
  const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`
  nats.connection.publish(subject, JSON.stringify(request), { reply })
}

async function closeInOrder(subscription: Subscription): Promise<void> {
  if (subscription.isClosed()) return
  await subscription.drain().catch(() => subscription.unsubscribe())
}

/** The meaning of a status message: the request has ended, a heartbeat, or a failure. */
function toStatus({ headers = newHeaders() }: Msg): 'end' | 'heartbeat' | Error {
  const { code, description } = headers
  if (code === 100) return 'heartbeat'
  // No message, or none in time.
  if (code === 404 || code === 408) return 'end'
  if (code === 409 && /maxbytes|maxackpending|batch completed/i.test(description)) return 'end'
  const what = code === 503 ? 'no responders' : description.toLowerCase()
  return new Error(`the consumer refuses a fetch: ${code} ${what}`)
}

const ackBytes = Buffer.from('+ACK')
const workingBytes = Buffer.from('+WPI')

function toDelivered(message: Msg, { toOffset, ...options }: FetcherOptions): DeliveredMessage {
  const { data, reply = '' } = message
  const { sequence, deliveries, publishedMs } = parseReply(reply)
  let isDone = false
  const respond = (payload: Uint8Array, isLast: boolean) => {
    if (isDone) return
    isDone = isLast
    options.respond(reply, payload, isLast)
  }
  return {
    data,
    proof: message.headers?.get(batchProofHeader) ?? '',
    tracedEvents: message.headers?.get(tracedEventsHeader) ?? '',
    sequence,
    streamOffset: toOffset(sequence),
    publishedMs,
    deliveries,
    isPast: options.isPast,
    ack: () => respond(ackBytes, true),
    working: () => respond(workingBytes, false),
    nak: (ms) => respond(Buffer.from(`-NAK ${JSON.stringify({ delay: ms * 1e6 })}`), true),
  }
}

/**
 * Reads the reply subject of a message:
 * `$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<consumer sequence>.<time>.<pending>`, with
 * the domain and the account before the stream when it has more parts.
 * @throws Error when it is not one of JetStream
 */
function parseReply(reply: string) {
  const parts = reply.split('.')
  const at = parts.length > 9 ? 6 : 4
  const deliveries = Number(parts[at])
  const sequence = Number(parts[at + 1])
  // Nanoseconds, which a double cannot hold.
  const publishedMs = Number(parts[at + 3]?.slice(0, -6))
  if (!Number.isSafeInteger(deliveries) || !Number.isSafeInteger(sequence)) {
    throw new Error('a message arrived that JetStream did not deliver')
  }
  return { deliveries, sequence, publishedMs }
}
