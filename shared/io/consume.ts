/**
 * The loop of a pull consumer: take ahead, hand over batches, acknowledge only what has been
 * handled. It promises at least once, nothing more, so what handles a batch is idempotent. An
 * outage is waited out with the messages in hand, then they are given back for others to try; a
 * message that fails for a reason of its own is set apart and never holds back its neighbours.
 * Batches follow the load: small and at once when there is little, large when there is much.
 */
import type { JsMsg } from 'nats'
import pRetry from 'p-retry'
import { type ConsumeMetrics, observeConsumer } from './consume-metrics.ts'
import { isDefect } from './defects.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { Nats } from './nats.ts'
import { ackWaitMs, consumerConfigs } from './streams.ts'
import { takeMessages } from './take-messages.ts'

/** A message as a handler sees it. */
export type ConsumedMessage = {
  data: Uint8Array
  /** Its place in the stream, and when that stream was made: they name it for good. */
  sequence: number
  streamCreatedMs: number
  /** 1 for the first time. */
  deliveries: number
}

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
  giveUp?: (message: ConsumedMessage, error: unknown) => Promise<void>
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
  /** Messages and bytes of one batch; a single message may be larger. */
  batchMessagesMax: number
  batchBytesMax: number
  /** The least time between the beginnings of two batches that are not full. */
  batchIntervalMs: number
  /** Where batches take longer, it is twice what the last one took, up to this. */
  batchIntervalMaxMs: number
  /** Bytes taken ahead before no more is taken: about three batches. */
  aheadBytesMax: number
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
const giveBackMs = 1_000
/** How long a message rests that failed for a reason of its own: longer each time, up to a limit. */
const setAsideMs = 500
const setAsideMaxMs = 60_000
/** Deliveries after which a message that fails may be given up. */
const defectsMax = 3
/** How often it is asked whether what waits is ready by now. */
const readyPollMs = 25
const readyRetryMs = 250
const stopMaxMs = 5_000

type State = ConsumeOptions & {
  stream: string
  counted: ConsumeMetrics
  buffer: JsMsg[]
  bufferBytes: number
  /** When the stream was made that a message is of. */
  streamCreatedMs: WeakMap<JsMsg, number>
  inHand: readonly JsMsg[]
  /** Messages acknowledged so far; and of one that failed, how many it had been when it first did. */
  handled: number
  handledBefore: Map<number, number>
  stopping: AbortController
  fault: string | null
  /**
   * When what was handled last could not be, for a reason outside, on the monotonic clock; null
   * when it could.
   */
  failedAtMs: number | null
  wake: () => void
  makeRoom: () => void
}

/** Begins consuming; it goes on through restarts of the broker until it is stopped. */
export function consume(options: ConsumeOptions): Consumption {
  const { stream } = consumerConfigs[options.durable]!
  const state: State = {
    ...options,
    stream,
    counted: observeConsumer({ ...options, stream }),
    buffer: [],
    bufferBytes: 0,
    streamCreatedMs: new WeakMap(),
    inHand: [],
    handled: 0,
    handledBefore: new Map(),
    stopping: new AbortController(),
    fault: 'has not begun',
    failedAtMs: null,
    wake: () => undefined,
    makeRoom: () => undefined,
  }
  const heartbeat = setInterval(() => {
    if (!options.nats.connected()) return
    for (const message of state.buffer) message.working()
    for (const message of state.inHand) message.working()
  }, heartbeatMs)
  const taking = takeMessages({
    ...options,
    stream,
    signal: state.stopping.signal,
    take: (message, createdMs) => take(state, message, createdMs),
    onFault: (fault) => {
      state.fault = fault
    },
    onFailure: state.counted.takeFailed,
  })
  const handling = handleBatches(state)
  return {
    fault: () => state.fault ?? (isFailing(state) ? 'messages cannot be handled' : null),
    wake: () => state.wake(),
    stop: async () => {
      state.stopping.abort()
      state.wake()
      state.makeRoom()
      const limit = new Promise((resolve) => setTimeout(resolve, stopMaxMs).unref())
      await Promise.race([Promise.all([taking, handling]), limit])
      clearInterval(heartbeat)
      for (const message of state.buffer.splice(0)) message.nak()
      // Acknowledgements are messages like any other: they must leave before the connection does.
      if (options.nats.connected()) await Promise.race([options.nats.connection.flush(), limit])
    },
  }
}

/** What is not taken here stays with the broker. */
async function take(state: State, message: JsMsg, createdMs: number): Promise<void> {
  state.streamCreatedMs.set(message, createdMs)
  state.buffer.push(message)
  state.bufferBytes += message.data.length
  if (state.buffer.length === 1 || isFull(state)) state.wake()
  while (isAheadFull(state) && !state.stopping.signal.aborted) {
    await new Promise<void>((resolve) => {
      state.makeRoom = resolve
    })
  }
}

function isAheadFull({ buffer, bufferBytes, limits }: State): boolean {
  return buffer.length >= limits.batchMessagesMax || bufferBytes >= limits.aheadBytesMax
}

async function handleBatches(state: State): Promise<void> {
  const { signal } = state.stopping
  let begunMs = Number.NEGATIVE_INFINITY
  let intervalMs = state.limits.batchIntervalMs
  while (!signal.aborted) {
    const waitMs =
      state.buffer.length === 0
        ? Number.POSITIVE_INFINITY
        : begunMs + intervalMs - performance.now()
    if (waitMs > 0 && !isFull(state)) {
      await untilWoken(state, waitMs)
      continue
    }
    const upTo = await findReady(state)
    const batch = takeBatch(state, upTo)
    if (batch.length === 0) {
      await untilWoken(state, upTo === null ? readyRetryMs : readyPollMs)
      continue
    }
    begunMs = performance.now()
    await handleBatch(state, batch)
    intervalMs = toIntervalMs(state.limits, performance.now() - begunMs)
  }
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
    const timer = Number.isFinite(ms) ? setTimeout(resolve, ms) : undefined
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
function takeBatch(state: State, upTo: number | null): JsMsg[] {
  const { batchMessagesMax, batchBytesMax } = state.limits
  const batch: JsMsg[] = []
  const rest: JsMsg[] = []
  let bytes = 0
  let full = false
  for (const message of state.buffer) {
    if (upTo === null || message.seq > upTo) {
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
  if (batch.length > 0) state.makeRoom()
  return batch
}

async function handleBatch(state: State, batch: JsMsg[]): Promise<void> {
  const { counted, handledBefore } = state
  counted.batches(batch.length, batch.filter((message) => message.redelivered).length)
  // One that hit a defect before would make the whole batch fail with it.
  const suspects = batch.filter((message) => handledBefore.has(message.seq))
  await handleTogether(
    state,
    suspects.length === 0 ? batch : batch.filter((message) => !handledBefore.has(message.seq)),
  )
  for (const message of suspects) await handleAlone(state, message)
  state.inHand = []
}

async function handleTogether(state: State, batch: JsMsg[]): Promise<void> {
  if (batch.length === 0) return
  const error = await tryInPlace(state, batch)
  if (error === null) {
    acknowledge(state, batch)
  } else if (isDefect(error) && batch.length > 1) {
    state.log.error({ err: error }, 'a batch failed by a defect; its messages are tried one by one')
    for (const message of batch) await handleAlone(state, message)
  } else if (isDefect(error)) {
    await setAside(state, batch[0]!, error)
  } else {
    // In an outage what waits goes with it: given back together, they come again in their order.
    const waiting = state.buffer.splice(0)
    state.bufferBytes = 0
    giveBack(state, [...batch, ...waiting], error)
    state.makeRoom()
  }
}

function acknowledge(state: State, batch: readonly JsMsg[]): void {
  for (const message of batch) {
    message.ack()
    state.handledBefore.delete(message.seq)
  }
  state.failedAtMs = null
  state.handled += batch.length
  state.acknowledged?.()
}

async function handleAlone(state: State, message: JsMsg): Promise<void> {
  const error = await tryInPlace(state, [message])
  if (error === null) acknowledge(state, [message])
  else if (isDefect(error)) await setAside(state, message, error)
  else giveBack(state, [message], error)
}

/**
 * Lets a message rest that hit a defect of ours. One that does so again and again is given up, but
 * only while others are handled: where all fail, the mistake is not in the message, and all of them
 * wait for a release that can handle them.
 */
async function setAside(state: State, message: JsMsg, error: unknown): Promise<void> {
  const { giveUp, handledBefore, handled } = state
  const before = handledBefore.get(message.seq)
  if (before === undefined) handledBefore.set(message.seq, handled)
  const alone = before !== undefined && handled > before
  if (giveUp !== undefined && alone && message.info.deliveryCount >= defectsMax) {
    try {
      await giveUp(toMessage(state, message), error)
      state.counted.givenUp()
      state.log.error({ err: error, seq: message.seq }, 'a message was given up')
      return acknowledge(state, [message])
    } catch (failure) {
      state.log.warn({ err: failure }, 'a message could not be given up yet')
    }
  }
  giveBack(state, [message], error)
}

function giveBack(state: State, batch: readonly JsMsg[], error: unknown): void {
  const defect = isDefect(error)
  state.counted.givenBack(defect ? 'defect' : 'outage', batch.length)
  if (defect) state.log.error({ err: error, seq: batch[0]?.seq }, 'a message was set aside')
  for (const message of batch) message.nak(defect ? toRestMs(message) : giveBackMs)
}

function toRestMs({ info: { deliveryCount } }: JsMsg): number {
  return Math.min(setAsideMaxMs, setAsideMs * 2 ** (deliveryCount - 1))
}

/** @returns null once the batch is handled, else the last failure */
async function tryInPlace(state: State, batch: readonly JsMsg[]): Promise<unknown> {
  const messages = batch.map((message) => toMessage(state, message))
  try {
    await pRetry(() => state.handle(messages), {
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

function toMessage(state: State, message: JsMsg): ConsumedMessage {
  const { streamSequence, deliveryCount } = message.info
  return {
    data: message.data,
    sequence: streamSequence,
    streamCreatedMs: state.streamCreatedMs.get(message) ?? 0,
    deliveries: deliveryCount,
  }
}
