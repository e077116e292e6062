/**
 * The loop of a pull consumer: it fetches messages, passes batches to a handler and acknowledges
 * only handled messages. Delivery is at least once, so handlers must be idempotent. In an outage it
 * retries the batch in place, then nacks it so that another process can try. A message that fails
 * by a defect is retried alone, so it never delays the others. Batches follow the load: small and
 * immediate when it is low, large when it is high.
 */
import pRetry from 'p-retry'
import type { StreamOffsets } from '#shared/core/telemetry/streams/stream-offsets.ts'
import { isDefect } from '#shared/io/process/defects.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { pause } from '#shared/io/process/pause.ts'
import type { Nats } from '../connection.ts'
import { consumerConfigs } from '../streams/stream-configs.ts'
import { ackWaitMs } from '../streams/telemetry-stream.ts'
import { type ConsumeMetrics, observeConsumer } from './consume-metrics.ts'
import type { DeliveredMessage } from './fetcher.ts'
import { type ReconnectingFetcher, startFetching } from './reconnecting-fetcher.ts'
import { createSuspects, type Suspects } from './suspects.ts'

/** A message as handlers get it. */
export type ConsumedMessage = Pick<
  DeliveredMessage,
  'data' | 'proof' | 'tracedEvents' | 'sequence' | 'streamOffset' | 'publishedMs' | 'deliveries'
>

export type ConsumeOptions = {
  nats: Nats
  /** Which of `consumerConfigs`. */
  durable: string
  /**
   * Handles a batch completely. An error counts as an outage and the batch is retried, unless
   * `isDefect` says otherwise: then each message is retried alone.
   */
  handle: (messages: readonly ConsumedMessage[]) => Promise<void>
  /**
   * Stores a message for an operator that keeps failing by a defect while others succeed; it is
   * acknowledged afterwards. Without this function the message is retried without limit.
   */
  quarantine?: (message: ConsumedMessage, error: unknown) => Promise<void>
  /**
   * The sequence up to which messages may be handled now; later ones wait. Without it all may. It
   * is read again after `wake`, and every 50 ms while messages wait.
   * @throws when it cannot be read at the moment
   */
  readyUpTo?: () => Promise<number>
  /**
   * Reads the offsets of the stream's messages, before messages are fetched over a new connection.
   * By default they depend on the creation of the stream alone.
   * @throws when they cannot be read at the moment
   */
  readOffsets?: (stream: string) => Promise<StreamOffsets>
  /** Called after each acknowledged batch. */
  acknowledged?: () => void
  limits: ConsumeLimits
  /** How long a batch is retried in place before it is nacked; 30 s by default. */
  retryInPlaceMaxMs?: number
  log: Log
  metrics: Metrics
}

export type ConsumeLimits = {
  /**
   * Messages and bytes of one batch; a single message may be larger. As much again is fetched while
   * a full batch is handled. The broker ends a connection that has 64 MB pending, so all consumers
   * of a connection together must stay below half of it.
   */
  batchMessagesMax: number
  batchBytesMax: number
  /** Minimum time between the starts of two batches that are not full. */
  batchIntervalMs: number
  /** After a slow batch the minimum is twice its duration, up to this. */
  batchIntervalMaxMs: number
  /**
   * Minimum time between two batches after one of hardly any bytes. It falls as batches grow: to
   * half of it after a batch of `lingerBytes`, and to `batchIntervalMs` at the least. Left out, the
   * size of a batch does not matter.
   */
  linger?: { maxMs: number; halfBytes: number }
}

export type Consumption = {
  /** Nacks waiting messages and waits up to 5 s for the batch in work. */
  stop: () => Promise<void>
  /** Null while messages can be fetched and handled, else the reason. */
  fault: () => string | null
  /** Call it when more messages may be ready. */
  wake: () => void
}

/** Four heartbeats within the consumer's ack_wait. */
const heartbeatMs = ackWaitMs / 4
const retryInPlaceMaxMs = 30_000
/** Redelivery delay of messages that were nacked in an outage. */
const outageDelayMs = 1_000
/** Redelivery delay of a message that failed by a defect: it doubles with each delivery. */
const defectDelayMs = 500
const defectDelayMaxMs = 60_000
/** Deliveries after which a failing message may be quarantined. */
const quarantineDeliveries = 3
/**
 * How soon to check again whether waiting messages are ready. The pause doubles while nothing wakes
 * the consumer: a check costs the broker and this process half a millisecond each.
 */
const readyPollMs = 50
const readyPollMaxMs = 200
const readyRetryMs = 250
const stopMaxMs = 5_000

type State = ConsumeOptions & {
  stream: string
  metered: ConsumeMetrics
  fetcher: ReconnectingFetcher
  buffer: DeliveredMessage[]
  bufferBytes: number
  /** The batch in work. */
  batch: readonly DeliveredMessage[]
  /** Messages acknowledged so far. */
  acknowledgedCount: number
  suspects: Suspects
  stopping: AbortController
  fault: string | null
  /** The last failure by an outage, on the monotonic clock; null after a success. */
  failedAtMs: number | null
  /** Whether `wake` was called since the last check of what is ready. */
  isWoken: boolean
  wake: () => void
}

/** Starts consuming; it survives restarts of the broker and runs until it is stopped. */
export function consume(options: ConsumeOptions): Consumption {
  const { stream } = consumerConfigs[options.durable]!
  const metered = observeConsumer({ ...options, stream })
  const stopping = new AbortController()
  const fetcher = startFetching({
    ...options,
    stream,
    signal: stopping.signal,
    onMessage: (message) => {
      state.buffer.push(message)
      state.bufferBytes += message.data.length
    },
    onFault: (fault) => {
      state.fault = fault
    },
    onFailure: metered.fetchFailed,
  })
  const state: State = {
    ...options,
    stream,
    metered,
    fetcher,
    buffer: [],
    bufferBytes: 0,
    batch: [],
    acknowledgedCount: 0,
    suspects: createSuspects(),
    stopping,
    fault: 'has not started',
    failedAtMs: null,
    isWoken: false,
    wake: () => undefined,
  }
  const heartbeat = setInterval(() => {
    if (!options.nats.connected()) return
    for (const message of state.buffer) message.working()
    for (const message of state.batch) message.working()
  }, heartbeatMs)
  const handling = handleBatches(state)
  const wake = () => {
    state.isWoken = true
    state.wake()
  }
  return {
    fault: () => state.fault ?? (isFailing(state) ? 'messages cannot be handled' : null),
    wake,
    stop: async () => {
      stopping.abort()
      wake()
      const limit = new Promise((resolve) => setTimeout(resolve, stopMaxMs).unref())
      await Promise.race([Promise.all([fetcher.ended, handling]), limit])
      clearInterval(heartbeat)
      for (const message of state.buffer.splice(0)) message.nak(0)
      // Acknowledgements are messages: send them before the connection closes.
      if (options.nats.connected()) await Promise.race([options.nats.connection.flush(), limit])
    },
  }
}

/**
 * Messages stay with the broker until a batch may start: it fetches one message, then the rest of
 * the batch. So messages are leased for no longer than their batch takes. Only while a full batch
 * is in work the next one is fetched ahead.
 */
async function handleBatches(state: State): Promise<void> {
  const { signal } = state.stopping
  const { fetcher, limits } = state
  let startedMs = Number.NEGATIVE_INFINITY
  let intervalMs = limits.batchIntervalMs
  let pollMs = readyPollMs
  while (!signal.aborted) {
    if (state.buffer.length === 0) {
      await fetcher.fetch({ messages: 1, bytes: 0, waits: true })
      continue
    }
    const restMs = startedMs + intervalMs - performance.now()
    if (restMs > 0 && !isFull(state)) {
      await pause(restMs, signal)
      continue
    }
    if (state.isWoken) pollMs = readyPollMs
    state.isWoken = false
    const upTo = await findReady(state)
    if (!isAnyReady(state, upTo)) {
      await untilWoken(state, upTo === null ? readyRetryMs : pollMs)
      pollMs = Math.min(2 * pollMs, readyPollMaxMs)
      continue
    }
    pollMs = readyPollMs
    await fillBuffer(state)
    const isBehind = isFull(state)
    const batch = nextBatch(state, upTo)
    startedMs = performance.now()
    const fetched = isBehind ? fillBuffer(state) : null
    await handleBatch(state, batch)
    intervalMs = toIntervalMs(limits, {
      tookMs: performance.now() - startedMs,
      bytes: batch.reduce((sum, message) => sum + message.data.length, 0),
    })
    await fetched
  }
}

/** Fetches what the broker has, up to a full batch. */
async function fillBuffer(state: State): Promise<void> {
  const { fetcher, buffer, bufferBytes, limits } = state
  const messages = limits.batchMessagesMax - buffer.length
  const bytes = limits.batchBytesMax - bufferBytes
  if (messages > 0 && bytes > 0) await fetcher.fetch({ messages, bytes, waits: false })
}

function isAnyReady({ buffer }: State, upTo: number | null): boolean {
  return upTo !== null && buffer.some((message) => isReady(message, upTo))
}

/** The watermark does not concern a message of a stream that was put back or replaced. */
function isReady(message: DeliveredMessage, upTo: number): boolean {
  return message.sequence <= upTo || message.isPast()
}

/**
 * How long after the start of a batch the next one may start. After a slow batch the pause is as
 * long as the batch took: a busy store gets fewer and larger batches. After a small one it is
 * longer, because a batch costs a store much the same however little it holds.
 */
export function toIntervalMs(
  { batchIntervalMs, batchIntervalMaxMs, linger }: ConsumeLimits,
  { tookMs, bytes }: { tookMs: number; bytes: number },
): number {
  const loadedMs = Math.min(Math.max(batchIntervalMs, 2 * tookMs), batchIntervalMaxMs)
  if (linger === undefined) return loadedMs
  return Math.max(loadedMs, linger.maxMs / (1 + bytes / linger.halfBytes))
}

/** @returns the sequence up to which messages may be handled, or null when it cannot be read */
async function findReady(state: State): Promise<number | null> {
  if (state.readyUpTo === undefined) return Number.POSITIVE_INFINITY
  try {
    return await state.readyUpTo()
  } catch (error) {
    state.metered.failed()
    state.log.debug({ err: error }, 'the watermark of ready messages cannot be read')
    return null
  }
}

function untilWoken(state: State, ms: number): Promise<void> {
  return new Promise((resolve) => {
    if (state.isWoken) return resolve()
    const timer = setTimeout(resolve, ms)
    state.wake = () => {
      clearTimeout(timer)
      resolve()
    }
  })
}

function isFull(state: State): boolean {
  const { batchMessagesMax, batchBytesMax } = state.limits
  return state.buffer.length >= batchMessagesMax || state.bufferBytes >= batchBytesMax
}

/** Moves ready messages from the buffer to a batch, in the order of arrival. */
function nextBatch(state: State, upTo: number | null): DeliveredMessage[] {
  const { batchMessagesMax, batchBytesMax } = state.limits
  const batch: DeliveredMessage[] = []
  const rest: DeliveredMessage[] = []
  let bytes = 0
  let full = false
  for (const message of state.buffer) {
    if (upTo === null || !isReady(message, upTo)) {
      rest.push(message)
      continue
    }
    const size = message.data.length
    full ||= batch.length > 0 && (bytes + size > batchBytesMax || batch.length === batchMessagesMax)
    if (full) rest.push(message)
    else {
      bytes += size
      batch.push(message)
    }
  }
  state.buffer = rest
  state.bufferBytes -= bytes
  state.batch = batch
  return batch
}

async function handleBatch(state: State, batch: DeliveredMessage[]): Promise<void> {
  const { metered } = state
  metered.batches(batch.length, batch.filter((message) => message.deliveries > 1).length)
  // A message that failed by a defect before would fail the whole batch again.
  const isSuspect = (message: DeliveredMessage) => state.suspects.has(message)
  await handleTogether(
    state,
    batch.filter((message) => !isSuspect(message)),
  )
  await handleEach(state, batch.filter(isSuspect))
  state.batch = []
}

async function handleTogether(state: State, batch: DeliveredMessage[]): Promise<void> {
  if (batch.length === 0) return
  const error = await tryInPlace(state, batch)
  if (error === null) {
    acknowledge(state, batch)
  } else if (isDefect(error) && batch.length > 1) {
    state.log.error({ err: error }, 'a batch failed by a defect; retrying its messages one by one')
    await handleEach(state, batch)
  } else if (isDefect(error)) {
    await nackDefect(state, batch[0]!, error)
  } else {
    // Nack the waiting messages too: together they are delivered again in order.
    const waiting = state.buffer.splice(0)
    state.bufferBytes = 0
    nack(state, [...batch, ...waiting], error)
  }
}

function acknowledge(state: State, batch: readonly DeliveredMessage[]): void {
  for (const message of batch) {
    message.ack()
    state.suspects.forget(message)
  }
  state.failedAtMs = null
  state.acknowledgedCount += batch.length
  state.acknowledged?.()
}

/**
 * Handles messages one by one. While a store is away the rest is nacked at once: each would wait
 * for it as long as the first, and be held meanwhile.
 */
async function handleEach(state: State, messages: readonly DeliveredMessage[]): Promise<void> {
  for (const [at, message] of messages.entries()) {
    const error = await tryInPlace(state, [message])
    if (error === null) acknowledge(state, [message])
    else if (isDefect(error)) await nackDefect(state, message, error)
    else return nack(state, messages.slice(at), error)
  }
}

/**
 * Nacks a message that failed by a defect. After three deliveries it is quarantined, but only if
 * other messages succeeded meanwhile: when all fail, the release is at fault and all of them wait.
 */
async function nackDefect(state: State, message: DeliveredMessage, error: unknown): Promise<void> {
  const { quarantine, suspects, acknowledgedCount } = state
  const before = suspects.note(message, acknowledgedCount)
  const othersSucceed = before !== undefined && acknowledgedCount > before
  if (quarantine !== undefined && othersSucceed && message.deliveries >= quarantineDeliveries) {
    try {
      await quarantine(message, error)
      state.metered.quarantined()
      state.log.error({ err: error, seq: message.sequence }, 'a message was quarantined')
      return acknowledge(state, [message])
    } catch (failure) {
      state.log.warn({ err: failure }, 'quarantining a message failed')
    }
  }
  nack(state, [message], error)
}

function nack(state: State, batch: readonly DeliveredMessage[], error: unknown): void {
  const defect = isDefect(error)
  state.metered.nacked(defect ? 'defect' : 'outage', batch.length)
  if (defect)
    state.log.error(
      { err: error, seq: batch[0]?.sequence },
      'a message failed by a defect and was nacked',
    )
  for (const message of batch) message.nak(defect ? toDefectDelayMs(message) : outageDelayMs)
}

function toDefectDelayMs({ deliveries }: DeliveredMessage): number {
  return Math.min(defectDelayMaxMs, defectDelayMs * 2 ** (deliveries - 1))
}

/** @returns null once the batch is handled, else the last failure */
async function tryInPlace(state: State, batch: readonly DeliveredMessage[]): Promise<unknown> {
  try {
    await pRetry(() => state.handle(batch), {
      retries: Number.POSITIVE_INFINITY,
      minTimeout: 50,
      maxTimeout: 500,
      maxRetryTime: state.retryInPlaceMaxMs ?? retryInPlaceMaxMs,
      randomize: true,
      shouldRetry: ({ error }) => !isDefect(error) && !state.stopping.signal.aborted,
      onFailedAttempt: ({ error, attemptNumber }) => {
        state.metered.failed()
        state.failedAtMs = isDefect(error) ? null : performance.now()
        if (attemptNumber === 1) state.log.warn({ err: error }, 'a batch failed; retrying')
      },
    })
    return null
  } catch (error) {
    return error
  }
}

/**
 * A failing batch is retried at least every half second. Without a failure for this long the batch
 * is in work (the first one after an outage is large), or the nacked messages are with others.
 */
const failsWithinMs = 2_500

function isFailing({ failedAtMs }: State): boolean {
  return failedAtMs !== null && performance.now() - failedAtMs < failsWithinMs
}
