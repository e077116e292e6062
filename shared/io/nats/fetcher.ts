/**
 * Asks a pull consumer for what it has, in bursts: so many messages and bytes as have their place
 * now. The client's own way keeps a question open and takes each message as it is published: that
 * wakes both processes for every message, and holds each for as long as its batch has to wait.
 * The protocol is that of nats-server's ADR-13.
 */
import { type Msg, headers as newHeaders, type Subscription } from 'nats'
import { batchProofHeader } from '#shared/core/telemetry/nats-names.ts'
import type { Nats } from './connection.ts'

/** A message that was taken: it is this process's until it is acknowledged or given back. */
export type DeliveredMessage = {
  data: Uint8Array
  /** What the sender proves it with; empty when nothing. */
  proof: string
  /** Its place in the stream, and when that stream was made: they name it for good. */
  sequence: number
  streamCreatedMs: number
  /** How often it was delivered: 1 for the first time. */
  deliveries: number
  ack: () => void
  /** Says that it is still being worked on. */
  working: () => void
  /** Gives it back, to be delivered again no sooner than this. */
  nak: (delayMs: number) => void
}

/** How much is asked for at a time. */
export type FetchRequest = {
  messages: number
  /** A single message may be larger. */
  bytes: number
  /** Whether to wait, for some seconds, where there is nothing yet. */
  waits: boolean
}

export type Fetcher = {
  /**
   * Asks; one at a time. It resolves once as much has come as was asked for, or nothing more is
   * there, or waiting was in vain, or the pull ended. It never rejects.
   */
  ask: (ask: FetchRequest) => Promise<void>
  /** Resolves when it can be asked no more: null when the broker fell silent, else why. */
  ended: Promise<Error | null>
  /** Ends it, in order: what is on its way is still handed over. */
  close: () => Promise<void>
}

export type FetcherOptions = {
  nats: Nats
  stream: string
  durable: string
  streamCreatedMs: number
  /** Takes each message as it comes. @throws when it cannot be one of this stream */
  onMessage: (message: DeliveredMessage) => void
}

/**
 * What is asked of a consumer is forgotten with the server that led it, without a word: where
 * heartbeats stay away, or an answer does, it is known.
 */
const waitsMs = 5_000
const heartbeatMs = 1_000
const silentMaxMs = 2_200

/** Of the subjects and headers that the broker counts as bytes of a message. */
const envelopeBytesMax = 64 * 1024

type Open = { reply: string; left: number; end: () => void }

/** Opens a pull of a consumer; nothing comes before it is asked for. */
export function openFetcher(options: FetcherOptions): Fetcher {
  const { nats, stream, durable } = options
  const { connection } = nats
  const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`
  const inbox = nats.newInbox()
  const { promise: ended, resolve: resolveEnded } = Promise.withResolvers<Error | null>()
  let open: Open | null = null
  let asked = 0
  let heardMs = 0
  let isOver = false
  const end = (why: Error | null) => {
    isOver = true
    open?.end()
    resolveEnded(why)
  }
  const hear = (message: Msg) => {
    heardMs = performance.now()
    if (!message.subject.startsWith(inbox)) {
      options.onMessage(toTaken(message, options))
      if (open !== null && --open.left === 0) open.end()
      return
    }
    // What ends an earlier question says nothing of this one.
    if (message.subject !== open?.reply) return
    const meaning = toMeaning(message)
    if (meaning === 'end') open.end()
    else if (meaning !== 'heartbeat') end(meaning)
  }
  const subscription = connection.subscribe(`${inbox}.*`, {
    callback: (error, message) => {
      try {
        if (error !== null) throw error
        hear(message)
      } catch (failure) {
        end(failure as Error)
      }
    },
  })
  void subscription.closed.then(() => end(null))
  const largest = (connection.info?.max_payload ?? 1024 ** 2) + envelopeBytesMax
  return {
    ended,
    ask: async ({ messages, bytes, waits }) => {
      if (isOver) return
      const { promise: answered, resolve } = Promise.withResolvers<void>()
      open = { reply: `${inbox}.${++asked}`, left: messages, end: resolve }
      heardMs = performance.now()
      const timer = setInterval(() => {
        if (performance.now() - heardMs > silentMaxMs) end(null)
      }, heartbeatMs)
      const how = waits
        ? { expires: waitsMs * 1e6, idle_heartbeat: heartbeatMs * 1e6 }
        : { no_wait: true }
      const question = { batch: messages, max_bytes: Math.max(bytes, largest), ...how }
      try {
        connection.publish(subject, JSON.stringify(question), { reply: open.reply })
        await answered
      } catch (error) {
        end(error as Error)
      } finally {
        clearInterval(timer)
        open = null
      }
    },
    close: () => {
      // Whoever waits for an answer need not wait for the broker, which may be away.
      end(null)
      return closeInOrder(subscription)
    },
  }
}

async function closeInOrder(subscription: Subscription): Promise<void> {
  if (subscription.isClosed()) return
  await subscription.drain().catch(() => subscription.unsubscribe())
}

/** What a message without content says: the end of a question, that it is heard, or a failure. */
function toMeaning({ headers = newHeaders() }: Msg): 'end' | 'heartbeat' | Error {
  const { code, description } = headers
  if (code === 100) return 'heartbeat'
  // Nothing there, or not in time.
  if (code === 404 || code === 408) return 'end'
  if (code === 409 && /maxbytes|maxackpending|batch completed/i.test(description)) return 'end'
  const what = code === 503 ? 'no responders' : description.toLowerCase()
  return new Error(`a consumer cannot be asked: ${code} ${what}`)
}

const ackBytes = Buffer.from('+ACK')
const workingBytes = Buffer.from('+WPI')

/** A message as it came; its reply subject says which one it is. */
function toTaken(message: Msg, { nats, streamCreatedMs }: FetcherOptions): DeliveredMessage {
  const { data, reply = '' } = message
  const { sequence, deliveries } = parseReply(reply)
  let isDone = false
  const answer = (payload: Uint8Array, isLast: boolean) => {
    if (isDone) return
    isDone = isLast
    nats.connection.publish(reply, payload)
  }
  return {
    data,
    proof: message.headers?.get(batchProofHeader) ?? '',
    sequence,
    deliveries,
    streamCreatedMs,
    ack: () => answer(ackBytes, true),
    working: () => answer(workingBytes, false),
    nak: (ms) => answer(Buffer.from(`-NAK ${JSON.stringify({ delay: ms * 1e6 })}`), true),
  }
}

/**
 * `$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<consumer's>.<time>.<pending>`, with the
 * domain and the account before the stream where it has more parts.
 */
function parseReply(reply: string): { deliveries: number; sequence: number } {
  const parts = reply.split('.')
  const at = parts.length > 9 ? 6 : 4
  const deliveries = Number(parts[at])
  const sequence = Number(parts[at + 1])
  if (!Number.isSafeInteger(deliveries) || !Number.isSafeInteger(sequence)) {
    throw new Error('a message came that is none of JetStream')
  }
  return { deliveries, sequence }
}
