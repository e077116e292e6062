/**
 * Group commit: events that arrive while publishes are in flight share the next message, in their
 * order. The acknowledgement of the message settles them. A message costs the broker the same for
 * any number of events, so a small one lingers for some milliseconds until more events arrive; a
 * single client never waits. Memory is bounded: beyond the limit an event is refused at once. Every
 * accepted event is settled exactly once, within its own time limit.
 */
import type { PublishFault } from '#shared/io/telemetry/telemetry-publisher.ts'

/** An event that waits to be stored. */
export type Waiter = {
  /** The text before the body, as `encodeEventHead` returns it. */
  head: string
  /** The body as it arrived. */
  body: Uint8Array
  /** `toWaiterBytes(head, body)` */
  bytes: number
  /** When its body was complete, on the monotonic clock: its time limit counts from here. */
  arrivedMs: number
}

type PublishOutcome = { duplicate: boolean; sequence: number }

/** The outcome of an event: the sequence of its stored message, or why it could not be stored. */
export type Settlement = { fault: null; sequence: number } | { fault: PublishFault }

export type GroupCommitOptions<W extends Waiter> = {
  /**
   * Resolves when the message is stored. Rejects with `final: true` when it is not stored and a
   * retry is useless. After any other rejection the outcome is unknown, and the same bytes are
   * published again under the same id.
   * @param batch the events of the message
   */
  publish: (
    message: Uint8Array,
    batchId: string,
    timeoutMs: number,
    batch: readonly W[],
  ) => Promise<PublishOutcome>
  /** Called once per accepted event. */
  settle: (waiter: W, settlement: Settlement) => void
  /** Called when `settle` has thrown; the events after it are settled all the same. */
  onSettleFailed: (waiter: W, error: unknown) => void
  /** Called after a batch was settled: there is capacity again. */
  onSettled: () => void
  /** Runs a function at the end of this turn of the event loop. */
  defer: (run: () => void) => void
  /** Runs a function after so many ms. */
  later: (run: () => void, ms: number) => void
  pause: (ms: number) => Promise<void>
  newBatchId: () => string
  nowMs: () => number
  limits: CommitLimits
  observe: CommitObserver
}

export type CommitLimits = {
  batchEventsMax: number
  batchBytesMax: number
  publishesInFlightMax: number
  /**
   * How long after the start of the last publish a batch of less than `lingerUntilEvents` may wait;
   * one of less than twice as many waits half as long.
   */
  lingerMs: number
  lingerUntilEvents: number
  waitingEventsMax: number
  /** Exceeded by one event, or the events of one `offerAll`, at most. */
  waitingBytesMax: number
  /** Time limit from the arrival of an event until it is settled. */
  publishTimeoutMs: number
  /** Time limit of one attempt to publish. */
  publishAttemptMs: number
}

/** Receives what group commit does, for metrics. */
export type CommitObserver = {
  stored: (batch: { events: number; bytes: number; tookMs: number; duplicate: boolean }) => void
  retried: (fault: PublishFault) => void
  failed: (batch: { events: number; fault: PublishFault }) => void
}

export type GroupCommit<W extends Waiter> = {
  /** Accepts an event. @returns false when there is no capacity */
  offer: (waiter: W) => boolean
  /** Accepts events together. @returns false when there is no capacity: then none is accepted */
  offerAll: (waiters: readonly W[]) => boolean
  /** Whether another event would be accepted. */
  hasCapacity: () => boolean
  /** Events and bytes accepted and not yet settled. */
  waiting: () => { events: number; bytes: number }
  /** Resolves when every event accepted so far is settled. */
  drained: () => Promise<void>
}

/** So few events, with no others unsettled, come from one or two clients and do not linger. */
const loneEventsMax = 2

/** Pause between two attempts when a publish fails immediately. */
const retryPauseMs = 50

type State<W extends Waiter> = GroupCommitOptions<W> & {
  queue: W[]
  inFlight: number
  launchDue: boolean
  /** When the next delayed launch is due, on the monotonic clock. */
  launchDueMs: number
  lastLaunchMs: number
  /** Most events unsettled at once since the last launch, and in the interval before it. */
  mostUnsettled: number
  lastMostUnsettled: number
  waitingEvents: number
  waitingBytes: number
  drains: (() => void)[]
}

/** @returns bytes of an event in a batch: head, body, closing brace and separator */
export function toWaiterBytes(head: string, body: Uint8Array): number {
  return Buffer.byteLength(head) + body.length + 2
}

export function createGroupCommit<W extends Waiter>(
  options: GroupCommitOptions<W>,
): GroupCommit<W> {
  const state: State<W> = {
    ...options,
    queue: [],
    inFlight: 0,
    launchDue: false,
    launchDueMs: Infinity,
    lastLaunchMs: -Infinity,
    mostUnsettled: 0,
    lastMostUnsettled: 0,
    waitingEvents: 0,
    waitingBytes: 0,
    drains: [],
  }
  return {
    offer: (waiter) => offer(state, waiter),
    offerAll: (waiters) => {
      if (!hasCapacity(state)) return false
      for (const waiter of waiters) enqueue(state, waiter)
      return true
    },
    hasCapacity: () => hasCapacity(state),
    waiting: () => ({ events: state.waitingEvents, bytes: state.waitingBytes }),
    drained: () =>
      new Promise((resolve) => {
        if (state.waitingEvents === 0) resolve()
        else state.drains.push(resolve)
      }),
  }
}

function hasCapacity<W extends Waiter>({ waitingEvents, waitingBytes, limits }: State<W>): boolean {
  return waitingEvents < limits.waitingEventsMax && waitingBytes < limits.waitingBytesMax
}

function offer<W extends Waiter>(state: State<W>, waiter: W): boolean {
  if (!hasCapacity(state)) return false
  enqueue(state, waiter)
  return true
}

function enqueue<W extends Waiter>(state: State<W>, waiter: W): void {
  state.waitingEvents++
  state.waitingBytes += waiter.bytes
  state.mostUnsettled = Math.max(state.mostUnsettled, state.waitingEvents)
  state.queue.push(waiter)
  scheduleLaunch(state)
}

/** Events that arrive in one turn of the event loop are launched together. */
function scheduleLaunch<W extends Waiter>(state: State<W>): void {
  if (state.launchDue || state.inFlight >= state.limits.publishesInFlightMax) return
  state.launchDue = true
  state.defer(() => {
    state.launchDue = false
    launch(state)
  })
}

function launch<W extends Waiter>(state: State<W>): void {
  const { limits, queue } = state
  while (queue.length > 0 && state.inFlight < limits.publishesInFlightMax) {
    const nowMs = state.nowMs()
    const dueMs = state.lastLaunchMs + toLingerMs(state)
    if (dueMs > nowMs) {
      launchLater(state, dueMs, nowMs)
      return
    }
    state.lastLaunchMs = nowMs
    state.lastMostUnsettled = state.mostUnsettled
    state.mostUnsettled = state.waitingEvents
    const batch = nextBatch(queue, limits)
    state.inFlight++
    void commit(state, batch)
  }
}

/** How long after the last launch the queued events wait for more events, in ms. */
function toLingerMs<W extends Waiter>(state: State<W>): number {
  const { queue, waitingEvents, lastMostUnsettled, limits } = state
  const { length } = queue
  // As many events as were lately unsettled at once: every client that waits has sent its event.
  if (length >= lastMostUnsettled) return 0
  if (length === waitingEvents && length <= loneEventsMax) return 0
  const { lingerUntilEvents: few, lingerMs } = limits
  if (length < few) return lingerMs
  return length < Math.min(2 * few, waitingEvents >> 1) ? lingerMs / 2 : 0
}

function launchLater<W extends Waiter>(state: State<W>, dueMs: number, nowMs: number): void {
  if (state.launchDueMs <= dueMs) return
  state.launchDueMs = dueMs
  state.later(() => {
    if (state.launchDueMs === dueMs) state.launchDueMs = Infinity
    launch(state)
  }, dueMs - nowMs)
}

function nextBatch<W extends Waiter>(queue: W[], limits: CommitLimits): W[] {
  let bytes = 2
  let count = 0
  while (count < queue.length && count < limits.batchEventsMax) {
    bytes += queue[count]!.bytes
    // A single event is always launched: the body limit keeps it far below the maximum.
    if (count > 0 && bytes > limits.batchBytesMax) break
    count++
  }
  return queue.splice(0, count)
}

async function commit<W extends Waiter>(state: State<W>, batch: W[]): Promise<void> {
  const { open, settlement } = await publishBatch(state, batch)
  state.inFlight--
  // Launch the next message first: writing the responses takes longer.
  launch(state)
  settleAll(state, open, settlement)
  state.onSettled()
  if (state.waitingEvents > 0) return
  const drains = state.drains
  state.drains = []
  for (const resolve of drains) resolve()
}

function settleAll<W extends Waiter>(
  state: State<W>,
  waiters: readonly W[],
  settlement: Settlement,
): void {
  for (const waiter of waiters) {
    state.waitingEvents--
    state.waitingBytes -= waiter.bytes
    try {
      state.settle(waiter, settlement)
    } catch (error) {
      state.onSettleFailed(waiter, error)
    }
  }
}

/**
 * Publishes a batch, with retries until it is stored or the time limit of its last event is over.
 * An event whose limit ends earlier is settled then: its outcome is unknown. Never rejects.
 * @returns the events that are not settled yet
 */
async function publishBatch<W extends Waiter>(
  state: State<W>,
  batch: readonly W[],
): Promise<{ open: readonly W[]; settlement: Settlement }> {
  const { nowMs, limits, observe } = state
  const sent = settleExpired(state, batch, 'no_ack')
  const message = encodeBatch(sent)
  const batchId = state.newBatchId()
  let open = sent
  let fault: PublishFault = 'no_ack'
  for (let attempt = 1; open.length > 0; attempt++) {
    const startedMs = nowMs()
    if (attempt > 1) observe.retried(fault)
    try {
      const leftMs = findDeadline(open, limits) - startedMs
      const timeoutMs = Math.min(Math.max(leftMs, attemptMsMin), limits.publishAttemptMs)
      const { duplicate, sequence } = await state.publish(message, batchId, timeoutMs, sent)
      const tookMs = nowMs() - startedMs
      observe.stored({ events: sent.length, bytes: message.length, tookMs, duplicate })
      return { open, settlement: { fault: null, sequence } }
    } catch (error) {
      const failure = error as { fault?: PublishFault; final?: boolean }
      fault = failure.fault ?? 'no_ack'
      if (failure.final === true) break
      const waitMs = Math.min(retryPauseMs, findDeadline(open, limits) - nowMs())
      if (nowMs() - startedMs < retryPauseMs && waitMs > 0) await state.pause(waitMs)
    }
    open = settleExpired(state, open, fault)
  }
  if (open.length > 0) observe.failed({ events: open.length, fault })
  return { open, settlement: { fault } }
}

/**
 * The shortest wait for an acknowledgement. A pause can end a moment before the deadline that it
 * leads to, and the deadline can then pass before the attempt.
 */
const attemptMsMin = 1

/** When the first of the events has to be settled, on the monotonic clock. */
const findDeadline = (open: readonly Waiter[], limits: CommitLimits): number =>
  Math.min(...open.map(({ arrivedMs }) => arrivedMs)) + limits.publishTimeoutMs

/**
 * Settles events whose time limit is over, and with them those whose limit ends within the next
 * pause: events that arrived one after the other do not end an attempt each.
 * @returns the others
 */
function settleExpired<W extends Waiter>(
  state: State<W>,
  waiters: readonly W[],
  fault: PublishFault,
): readonly W[] {
  const { limits, nowMs, observe } = state
  const atMs = nowMs()
  if (findDeadline(waiters, limits) > atMs) return waiters
  const isExpired = ({ arrivedMs }: W) => arrivedMs + limits.publishTimeoutMs <= atMs + retryPauseMs
  const expired = waiters.filter(isExpired)
  observe.failed({ events: expired.length, fault })
  settleAll(state, expired, { fault })
  return waiters.filter((waiter) => !isExpired(waiter))
}

const openBracket = 0x5b
const comma = 0x2c
const closeBrace = 0x7d
const closeBracket = 0x5d

/** Encodes events as one JSON array, in their order. Bodies are copied unchanged. */
export function encodeBatch(batch: readonly Waiter[]): Uint8Array {
  let bytes = 1
  for (const waiter of batch) bytes += waiter.bytes
  const message = Buffer.allocUnsafe(bytes)
  let at = 0
  for (const { head, body } of batch) {
    message[at] = at === 0 ? openBracket : comma
    at += 1 + message.write(head, at + 1)
    message.set(body, at)
    at += body.length
    message[at++] = closeBrace
  }
  message[at] = closeBracket
  return message
}
