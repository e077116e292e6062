/**
 * Group commit: events that arrive while publishes are under way travel together in the next
 * message, in their order, and each is settled by the acknowledgement of its own message. A message
 * costs the broker the same however few it holds, so one that holds few waits, some milliseconds at
 * most: a few events for more to come, and more of them until half of all that are unsettled are in
 * it. Many clients make long messages, and a lone one waits for nobody. Memory is bounded, and past
 * the bound an event is refused at once. Every event taken is settled exactly once.
 */
import type { PublishFault } from '#shared/io/telemetry/telemetry-publisher.ts'

/** An event on its way: the header's text before the body, and the body as it arrived. */
export type Waiter = {
  /** `encodeEventHead` of the event. */
  head: string
  body: Uint8Array
  /** `toWaiterBytes(head, body)` */
  bytes: number
  /** When its time began, on the monotonic clock: when it was read. */
  takenMs: number
}

export type PublishOutcome = { duplicate: boolean; sequence: number }

/** What became of an event: the sequence of the message that holds it, or why it has none. */
export type Settlement = { fault: null; sequence: number } | { fault: PublishFault }

export type GroupCommitOptions<W extends Waiter> = {
  /**
   * Resolves once the message is stored. Rejects with `final: true` when it was not and another try
   * is of no use; any other rejection leaves it unknown, and the same bytes go out under the same
   * id.
   */
  publish: (message: Uint8Array, batchId: string, timeoutMs: number) => Promise<PublishOutcome>
  /** Called once per event taken. */
  settle: (waiter: W, settlement: Settlement) => void
  /** Told after that: there is room for others. */
  onSettled: () => void
  /** Runs something at the end of this turn of the event loop. */
  defer: (run: () => void) => void
  /** Runs something after so many ms. */
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
   * How long after the beginning of a publish one of less than `lingerUntilEvents` may wait; one of
   * less than twice as many half as long.
   */
  lingerMs: number
  lingerUntilEvents: number
  waitingEventsMax: number
  /** More than this by one event at most. */
  waitingBytesMax: number
  /** From when an event was taken to when it is settled, whatever happens. */
  publishTimeoutMs: number
  /** One try of a publish. */
  publishAttemptMs: number
}

/** Where group commit reports to; all of it feeds metrics. */
export type CommitObserver = {
  stored: (batch: { events: number; bytes: number; tookMs: number; duplicate: boolean }) => void
  retried: (fault: PublishFault) => void
  failed: (batch: { events: number; fault: PublishFault }) => void
}

export type GroupCommit<W extends Waiter> = {
  /** Takes an event, or returns false when there is no room. */
  offer: (waiter: W) => boolean
  /** Whether less is waiting than may. */
  hasRoom: () => boolean
  /** Events and bytes taken and not yet settled. */
  waiting: () => { events: number; bytes: number }
  /** Resolves once everything taken so far is settled. */
  drained: () => Promise<void>
}

/** With nothing else unsettled, so few are one client's or two's. */
const loneEventsMax = 2

/** The pause between two tries of a publish that failed at once. */
const retryPauseMs = 50

type State<W extends Waiter> = GroupCommitOptions<W> & {
  queue: W[]
  inFlight: number
  launchDue: boolean
  /** When the next launch is due that waits for its time, on the monotonic clock. */
  launchDueMs: number
  lastLaunchMs: number
  /** The most events that were unsettled at once since the last launch, and before that one. */
  mostUnsettled: number
  lastMostUnsettled: number
  waitingEvents: number
  waitingBytes: number
  drains: (() => void)[]
}

/** The bytes of an event within a batch: its head, its body, the closing brace and a separator. */
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
    hasRoom: () => hasRoom(state),
    waiting: () => ({ events: state.waitingEvents, bytes: state.waitingBytes }),
    drained: () =>
      new Promise((resolve) => {
        if (state.waitingEvents === 0) resolve()
        else state.drains.push(resolve)
      }),
  }
}

function hasRoom<W extends Waiter>({ waitingEvents, waitingBytes, limits }: State<W>): boolean {
  return waitingEvents < limits.waitingEventsMax && waitingBytes < limits.waitingBytesMax
}

function offer<W extends Waiter>(state: State<W>, waiter: W): boolean {
  if (!hasRoom(state)) return false
  state.waitingEvents++
  state.waitingBytes += waiter.bytes
  state.mostUnsettled = Math.max(state.mostUnsettled, state.waitingEvents)
  state.queue.push(waiter)
  scheduleLaunch(state)
  return true
}

/** What arrives within one turn of the event loop leaves together. */
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
    const batch = takeBatch(queue, limits)
    state.inFlight++
    void commit(state, batch)
  }
}

/** How long after the last launch what is queued may wait for more, in ms. */
function toLingerMs<W extends Waiter>(state: State<W>): number {
  const { queue, waitingEvents, lastMostUnsettled, limits } = state
  const { length } = queue
  // As many as there lately were at once: clients that each wait for their answer are all here.
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

function takeBatch<W extends Waiter>(queue: W[], limits: CommitLimits): W[] {
  let bytes = 2
  let count = 0
  while (count < queue.length && count < limits.batchEventsMax) {
    bytes += queue[count]!.bytes
    // A lone event goes out whatever its size: the body limit keeps it far below the bound.
    if (count > 0 && bytes > limits.batchBytesMax) break
    count++
  }
  return queue.splice(0, count)
}

async function commit<W extends Waiter>(state: State<W>, batch: W[]): Promise<void> {
  const settlement = await publishBatch(state, batch)
  state.inFlight--
  // The next message leaves before these answers are written: they take longer.
  launch(state)
  for (const waiter of batch) {
    state.waitingEvents--
    state.waitingBytes -= waiter.bytes
    state.settle(waiter, settlement)
  }
  state.onSettled()
  if (state.waitingEvents > 0) return
  const drains = state.drains
  state.drains = []
  for (const resolve of drains) resolve()
}

/** Resolves once the batch is stored, or cannot be said to be. */
async function publishBatch<W extends Waiter>(state: State<W>, batch: W[]): Promise<Settlement> {
  const { nowMs, limits, observe } = state
  const deadlineMs = batch[0]!.takenMs + limits.publishTimeoutMs
  const message = encodeBatch(batch)
  const batchId = state.newBatchId()
  let fault: PublishFault = 'no_ack'
  for (let attempt = 1; ; attempt++) {
    const startedMs = nowMs()
    const leftMs = deadlineMs - startedMs
    if (leftMs <= 0) break
    if (attempt > 1) observe.retried(fault)
    try {
      const timeoutMs = Math.min(leftMs, limits.publishAttemptMs)
      const { duplicate, sequence } = await state.publish(message, batchId, timeoutMs)
      const tookMs = nowMs() - startedMs
      observe.stored({ events: batch.length, bytes: message.length, tookMs, duplicate })
      return { fault: null, sequence }
    } catch (error) {
      const failure = error as { fault?: PublishFault; final?: boolean }
      fault = failure.fault ?? 'no_ack'
      if (failure.final === true) break
      const waitMs = Math.min(retryPauseMs, deadlineMs - nowMs())
      if (nowMs() - startedMs < retryPauseMs && waitMs > 0) await state.pause(waitMs)
    }
  }
  observe.failed({ events: batch.length, fault })
  return { fault }
}

const openBracket = 0x5b
const comma = 0x2c
const closeBrace = 0x7d
const closeBracket = 0x5d

/** One JSON array of the events in their order; no body is read or changed. */
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
