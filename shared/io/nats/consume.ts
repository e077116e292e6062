/**
 * The loop of a pull consumer: take ahead, hand over batches, acknowledge only what has been
 * handled. It promises at least once, nothing more, so what handles a batch is idempotent. An
 * outage is waited out with the messages in hand, then they are given back for others to try; a
 * message that fails for a reason of its own is set apart and never holds back its neighbours.
 * Batches follow the load: small and at once when there is little, large when there is much.
 */
import pRetry from 'p-retry'
import { isDefect } from '#shared/io/process/defects.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { pause } from '#shared/io/process/pause.ts'
import type { Nats } from './connection.ts'
import { type ConsumeMetrics, observeConsumer } from './consume-metrics.ts'
import { ackWaitMs, consumerConfigs } from './ensure-streams.ts'
import type { DeliveredMessage } from './fetcher.ts'
import { type ReconnectingFetcher, startFetching } from './reconnecting-fetcher.ts'

/** A message as a handler sees it. */
export type ConsumedMessage = Pick<
  DeliveredMessage,
  'data' | 'proof' | 'sequence' | 'streamCreatedMs' | 'deliveries'
>

export type ConsumeOptions = {
  nats: Nats
  /** Which of `consumerConfigs`. */
  durable: string
  /**
   * Handles a batch completely. What it throws is an outage, and the batch is tried again, unless
   * it is one of our own defects: then each message is tried by itself.
   */
  handle: (messages: readonly ConsumedMessage[]) => Promise<void>
  /**
   * Takes a message that fails by a defect again and again while others do not, for where something
   * waits for every message: keeps it where somebody can look at it. Then it is acknowledged.
   * Left out, it is tried for ever.
   */
  quarantine?: (message: ConsumedMessage, error: unknown) => Promise<void>
  /**
   * Up to which sequence messages may be handled by now; later ones wait. Left out, all may. It is
   * asked again when `wake` says so, and every moment while something waits.
   * @throws when it cannot be told at the moment
   */
  readyUpTo?: () => Promise<number>
  /** Told whenever a batch has been acknowledged. */
  acknowledged?: () => void
  limits: ConsumeLimits
  /** How long a batch is tried again in place before its messages are given back, in ms: 30 s. */
  holdMaxMs?: number
  log: Log
  metrics: Metrics
}

export type ConsumeLimits = {
  /**
   * Messages and bytes of one batch; a single message may be larger. As much is taken beside a full
   * one: of all consumers of a connection half of the 64 MB, at most, at which the broker ends it.
   */
  batchMessagesMax: number
  batchBytesMax: number
  /** The least time between the beginnings of two batches that are not full. */
  batchIntervalMs: number
  /** Where batches take longer, it is twice what the last one took, up to this. */
  batchIntervalMaxMs: number
}

export type Consumption = {
  /** Gives back what has not been begun and waits for the batch in hand, for 5 s at most. */
  stop: () => Promise<void>
  /** Null while messages can be taken and handled, else why not. */
  fault: () => string | null
  /** Says that more messages may be ready. */
  wake: () => void
}

/** Four heartbeats within the consumer's ack_wait. */
const heartbeatMs = ackWaitMs / 4
const holdMaxMs = 30_000
/** How long messages rest that are given back. */
const outageDelayMs = 1_000
/**
 * How long a message rests that failed for a reason of its own: longer each time, up to a limit.
 */
const defectDelayMs = 500
const defectDelayMaxMs = 60_000
/** Deliveries after which a message that fails may be given up. */
const quarantineDeliveries = 3
/** How often it is asked whether what waits is ready by now. */
const readyPollMs = 50
const readyRetryMs = 250
const stopMaxMs = 5_000

type State = ConsumeOptions & {
  stream: string
  counted: ConsumeMetrics
  taking: ReconnectingFetcher
  buffer: DeliveredMessage[]
  bufferBytes: number
  inHand: readonly DeliveredMessage[]
  /**
   * Messages acknowledged so far; and of one that failed, how many it had been when it first did.
   */
  handled: number
  handledBefore: Map<number, number>
  stopping: AbortController
  fault: string | null
  /**
   * When what was handled last could not be, for a reason outside, on the monotonic clock; null
   * when it could.
   */
  failedAtMs: number | null
  /** Whether it was woken since it was last looked what is ready. */
  isWoken: boolean
  wake: () => void
}

/** Begins consuming; it goes on through restarts of the broker until it is stopped. */
export function consume(options: ConsumeOptions): Consumption {
  const { stream } = consumerConfigs[options.durable]!
  const counted = observeConsumer({ ...options, stream })
  const stopping = new AbortController()
  const taking = startFetching({
    ...options,
    stream,
    signal: stopping.signal,
    take: (message) => {
      state.buffer.push(message)
      state.bufferBytes += message.data.length
    },
    onFault: (fault) => {
      state.fault = fault
    },
    onFailure: counted.fetchFailed,
  })
  const state: State = {
    ...options,
    stream,
    counted,
    taking,
    buffer: [],
    bufferBytes: 0,
    inHand: [],
    handled: 0,
    handledBefore: new Map(),
    stopping,
    fault: 'has not begun',
    failedAtMs: null,
    isWoken: false,
    wake: () => undefined,
  }
  const heartbeat = setInterval(() => {
    if (!options.nats.connected()) return
    for (const message of state.buffer) message.working()
    for (const message of state.inHand) message.working()
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
      await Promise.race([Promise.all([taking.ended, handling]), limit])
      clearInterval(heartbeat)
      for (const message of state.buffer.splice(0)) message.nak(0)
      // Acknowledgements are messages like any other: they must leave before the connection does.
      if (options.nats.connected()) await Promise.race([options.nats.connection.flush(), limit])
    },
  }
}

/**
 * What is not asked for stays with the broker: one message says that there is something, and what
 * else there is by then is taken once a batch may begin. So messages come in bursts and are held
 * for no longer than their batch, and only where one batch is full the next is taken beside it.
 */
async function handleBatches(state: State): Promise<void> {
  const { signal } = state.stopping
  const { taking, limits } = state
  let begunMs = Number.NEGATIVE_INFINITY
  let intervalMs = limits.batchIntervalMs
  while (!signal.aborted) {
    if (state.buffer.length === 0) {
      await taking.ask({ messages: 1, bytes: 0, waits: true })
      continue
    }
    const restMs = begunMs + intervalMs - performance.now()
    if (restMs > 0 && !isFull(state)) {
      await pause(restMs, signal)
      continue
    }
    state.isWoken = false
    const upTo = await findReady(state)
    if (!isAnyReady(state, upTo)) {
      await untilWoken(state, upTo === null ? readyRetryMs : readyPollMs)
      continue
    }
    await takeMore(state)
    const isBehind = isFull(state)
    const batch = takeBatch(state, upTo)
    begunMs = performance.now()
    const taken = isBehind ? takeMore(state) : null
    await handleBatch(state, batch)
    intervalMs = toIntervalMs(limits, performance.now() - begunMs)
    await taken
  }
}

/** Takes what there is, up to a full batch. */
async function takeMore(state: State): Promise<void> {
  const { taking, buffer, bufferBytes, limits } = state
  const messages = limits.batchMessagesMax - buffer.length
  const bytes = limits.batchBytesMax - bufferBytes
  if (messages > 0 && bytes > 0) await taking.ask({ messages, bytes, waits: false })
}

function isAnyReady({ buffer }: State, upTo: number | null): boolean {
  return upTo !== null && buffer.some((message) => message.sequence <= upTo)
}

/** As long a rest as a batch took: what is busy is asked less often, and for more at once. */
function toIntervalMs({ batchIntervalMs, batchIntervalMaxMs }: ConsumeLimits, tookMs: number) {
  return Math.min(Math.max(batchIntervalMs, 2 * tookMs), batchIntervalMaxMs)
}

/** @returns up to which sequence messages may be handled, or null when it cannot be told */
async function findReady(state: State): Promise<number | null> {
  if (state.readyUpTo === undefined) return Number.POSITIVE_INFINITY
  try {
    return await state.readyUpTo()
  } catch (error) {
    state.counted.failed()
    state.log.debug({ err: error }, 'it cannot be told which messages are ready')
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

/** Takes what may be handled by now, in the order of arrival, up to the limits of a batch. */
function takeBatch(state: State, upTo: number | null): DeliveredMessage[] {
  const { batchMessagesMax, batchBytesMax } = state.limits
  const batch: DeliveredMessage[] = []
  const rest: DeliveredMessage[] = []
  let bytes = 0
  let full = false
  for (const message of state.buffer) {
    if (upTo === null || message.sequence > upTo) {
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
  state.inHand = batch
  return batch
}

async function handleBatch(state: State, batch: DeliveredMessage[]): Promise<void> {
  const { counted, handledBefore } = state
  counted.batches(batch.length, batch.filter((message) => message.deliveries > 1).length)
  // One that hit a defect before would make the whole batch fail with it.
  const suspects = batch.filter((message) => handledBefore.has(message.sequence))
  await handleTogether(
    state,
    suspects.length === 0 ? batch : batch.filter((message) => !handledBefore.has(message.sequence)),
  )
  for (const message of suspects) await handleAlone(state, message)
  state.inHand = []
}

async function handleTogether(state: State, batch: DeliveredMessage[]): Promise<void> {
  if (batch.length === 0) return
  const error = await tryInPlace(state, batch)
  if (error === null) {
    acknowledge(state, batch)
  } else if (isDefect(error) && batch.length > 1) {
    state.log.error({ err: error }, 'a batch failed by a defect; its messages are tried one by one')
    for (const message of batch) await handleAlone(state, message)
  } else if (isDefect(error)) {
    await nackDefect(state, batch[0]!, error)
  } else {
    // In an outage what waits goes with it: given back together, they come again in their order.
    const waiting = state.buffer.splice(0)
    state.bufferBytes = 0
    nack(state, [...batch, ...waiting], error)
  }
}

function acknowledge(state: State, batch: readonly DeliveredMessage[]): void {
  for (const message of batch) {
    message.ack()
    state.handledBefore.delete(message.sequence)
  }
  state.failedAtMs = null
  state.handled += batch.length
  state.acknowledged?.()
}

async function handleAlone(state: State, message: DeliveredMessage): Promise<void> {
  const error = await tryInPlace(state, [message])
  if (error === null) acknowledge(state, [message])
  else if (isDefect(error)) await nackDefect(state, message, error)
  else nack(state, [message], error)
}

/**
 * Lets a message rest that hit a defect of ours. One that does so again and again is given up, but
 * only while others are handled: where all fail, the mistake is not in the message, and all of them
 * wait for a release that can handle them.
 */
async function nackDefect(state: State, message: DeliveredMessage, error: unknown): Promise<void> {
  const { quarantine, handledBefore, handled } = state
  const before = handledBefore.get(message.sequence)
  if (before === undefined) handledBefore.set(message.sequence, handled)
  const alone = before !== undefined && handled > before
  if (quarantine !== undefined && alone && message.deliveries >= quarantineDeliveries) {
    try {
      await quarantine(message, error)
      state.counted.quarantined()
      state.log.error({ err: error, seq: message.sequence }, 'a message was given up')
      return acknowledge(state, [message])
    } catch (failure) {
      state.log.warn({ err: failure }, 'a message could not be given up yet')
    }
  }
  nack(state, [message], error)
}

function nack(state: State, batch: readonly DeliveredMessage[], error: unknown): void {
  const defect = isDefect(error)
  state.counted.nacked(defect ? 'defect' : 'outage', batch.length)
  if (defect) state.log.error({ err: error, seq: batch[0]?.sequence }, 'a message was set aside')
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
      maxRetryTime: state.holdMaxMs ?? holdMaxMs,
      randomize: true,
      shouldRetry: ({ error }) => !isDefect(error) && !state.stopping.signal.aborted,
      onFailedAttempt: ({ error, attemptNumber }) => {
        state.counted.failed()
        state.failedAtMs = isDefect(error) ? null : performance.now()
        if (attemptNumber === 1) state.log.warn({ err: error }, 'a batch failed; trying again')
      },
    })
    return null
  } catch (error) {
    return error
  }
}

/**
 * What cannot be handled fails again and again, with a pause of half a second at most. So when it
 * has not failed for this long it is being handled, and the first batch after an outage is a large
 * one; or there is nothing to handle, since what was given back waits for others.
 */
const failsWithinMs = 2_500

function isFailing({ failedAtMs }: State): boolean {
  return failedAtMs !== null && performance.now() - failedAtMs < failsWithinMs
}
