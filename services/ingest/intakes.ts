/**
 * The ways into the telemetry streams: each has its own queue, its own group commit and its own
 * publishes, so a stream that is full or slow delays nothing of another. Submissions of all streams
 * share the limits of the queue.
 */
import {
  newestFirstMs,
  queuedBytesMax,
  queuedMsMax,
  queuedRequestsMax,
  scoringSliceMs,
} from '#shared/core/base/limits/ingest.ts'
import { type Admission, type Arrival, createAdmission } from './admission.ts'
import {
  type CommitLimits,
  type CommitObserver,
  createGroupCommit,
  type GroupCommit,
  type GroupCommitOptions,
  type Waiter,
} from './group-commit.ts'

type IntakesOptions<S extends Arrival, W extends Waiter> = {
  /** Whether the connection to NATS is up at this moment. */
  connected: () => boolean
  process: (submission: S) => void
  /** Refuses a submission for which there is no room or no time. */
  refuse: (submission: S) => void
  /** The number of the stream that a submission is probably for. */
  guessStream: (submission: S) => number
  /** The number of an event's stream. */
  streamOf: (waiter: W) => number
  /** Publishes to the stream of a number. */
  publish: (stream: number, ...batch: Parameters<Publish<W>>) => ReturnType<Publish<W>>
  settle: GroupCommitOptions<W>['settle']
  onSettleFailed: GroupCommitOptions<W>['onSettleFailed']
  /** One for each stream, in the order of their numbers. */
  observers: readonly CommitObserver[]
  newBatchId: () => string
  /** The monotonic clock. */
  nowMs: () => number
  commitLimits: CommitLimits
}

type Publish<W extends Waiter> = GroupCommitOptions<W>['publish']

export type Intakes<S extends Arrival, W extends Waiter> = {
  /** Processes a submission, now or in its turn. */
  admit: Admission<S>['admit']
  /** Accepts an event for its stream. @returns false when there is no capacity */
  offer: GroupCommit<W>['offer']
  /** Accepts events of one stream together. @returns false when there is no capacity */
  offerAll: (waiters: readonly [W, ...W[]]) => boolean
  queued: Admission<S>['queued']
  /** Whether the submissions of a stream wait so long that some will be refused. */
  overloaded: (stream: number) => boolean
  waiting: GroupCommit<W>['waiting']
  /** Resolves when every submission admitted so far is processed and settled. */
  drained: () => Promise<void>
}

type Intake<S extends Arrival, W extends Waiter> = {
  admission: Admission<S>
  commit: GroupCommit<W>
}

/** Creates one for each stream. */
export function createIntakes<S extends Arrival, W extends Waiter>(
  options: IntakesOptions<S, W>,
): Intakes<S, W> {
  const { observers, guessStream, streamOf } = options
  const intakes = observers.map((_, index) => createIntake(options, index))
  const [first] = intakes as [Intake<S, W>, ...Intake<S, W>[]]
  return {
    admit: (submission) => {
      // With one stream there is nothing to find.
      const stream = intakes.length === 1 ? 1 : guessStream(submission)
      const intake = intakes[stream - 1] ?? first
      intake.admission.admit(submission)
    },
    offer: (waiter) => intakes[streamOf(waiter) - 1]!.commit.offer(waiter),
    offerAll: (waiters) => intakes[streamOf(waiters[0]) - 1]!.commit.offerAll(waiters),
    queued: () => {
      const all = intakes.map(({ admission }) => admission.queued())
      return { requests: sumOf(all, 'requests'), bytes: sumOf(all, 'bytes') }
    },
    overloaded: (stream) => intakes[stream - 1]!.admission.overloaded(),
    waiting: () => {
      const all = intakes.map(({ commit }) => commit.waiting())
      return { events: sumOf(all, 'events'), bytes: sumOf(all, 'bytes') }
    },
    drained: async () => {
      await Promise.all(intakes.map(({ admission }) => admission.drained()))
      await Promise.all(intakes.map(({ commit }) => commit.drained()))
    },
  }
}

function sumOf<K extends string>(all: readonly Record<K, number>[], key: K): number {
  return all.reduce((sum, one) => sum + one[key], 0)
}

function createIntake<S extends Arrival, W extends Waiter>(
  options: IntakesOptions<S, W>,
  index: number,
): Intake<S, W> {
  const { connected, process, refuse, publish, observers, newBatchId, nowMs } = options
  const { length } = observers
  const intake: Intake<S, W> = {
    admission: createAdmission<S>({
      process,
      refuse,
      // Without a broker submissions do not wait: each is refused.
      hasCapacity: () => !connected() || intake.commit.hasCapacity(),
      defer: setImmediate,
      later: setTimeout,
      nowMs,
      limits: {
        scoringSliceMs: scoringSliceMs / length,
        queuedRequestsMax: Math.floor(queuedRequestsMax / length),
        queuedBytesMax: Math.floor(queuedBytesMax / length),
        queuedMsMax,
        newestFirstMs,
      },
    }),
    commit: createGroupCommit<W>({
      publish: (...batch) => publish(index + 1, ...batch),
      settle: options.settle,
      onSettleFailed: options.onSettleFailed,
      onSettled: () => intake.admission.resume(),
      defer: setImmediate,
      later: setTimeout,
      pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      newBatchId,
      nowMs,
      limits: options.commitLimits,
      observe: observers[index]!,
    }),
  }
  return intake
}
