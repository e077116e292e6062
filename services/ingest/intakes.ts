/**
 * The ways into the telemetry streams: each has its own queue, its own group commit and its own
 * publishes, so a stream that is full or slow delays nothing of another. Submissions of all streams
 * share the limits of the queue.
 */
import {
  queuedBytesMax,
  queuedRequestsMax,
  scoringSliceMs,
} from '#shared/core/base/limits/ingest.ts'
import { findTenant } from '#shared/core/telemetry/body-scan.ts'
import { type Admission, createAdmission } from './admission.ts'
import type { Edge } from './app.ts'
import type { GroupCommit, Settlement } from './group-commit.ts'
import { type CommitLimits, type CommitObserver, createGroupCommit } from './group-commit.ts'
import type { Pending, Submission } from './http/handle-submission.ts'
import { tracePublish } from './http/trace-submissions.ts'

type IntakesOptions = {
  edge: () => Edge | null
  /** Whether the connection to NATS is up at this moment. */
  connected: () => boolean
  process: (submission: Submission) => void
  settle: (pending: Pending, settlement: Settlement) => void
  isTracing: boolean
  /** One for each stream. */
  observers: readonly CommitObserver[]
  newBatchId: () => string
  /** The monotonic clock. */
  nowMs: () => number
  commitLimits: CommitLimits
}

export type Intakes = {
  /** Processes a submission, now or in its turn. */
  admit: Admission<Submission>['admit']
  /** Accepts an event for the stream of its tenant. @returns false when there is no capacity */
  offer: GroupCommit<Pending>['offer']
  queued: Admission<Submission>['queued']
  waiting: GroupCommit<Pending>['waiting']
  /** Resolves when every submission admitted so far is processed and settled. */
  drained: () => Promise<void>
}

type Intake = { admission: Admission<Submission>; commit: GroupCommit<Pending> }

/** Creates one for each stream. */
export function createIntakes(options: IntakesOptions): Intakes {
  const { edge, observers } = options
  const intakes = observers.map((_, index) => createIntake(options, index))
  const [first] = intakes as [Intake, ...Intake[]]
  const findIntake = (body: Buffer): Intake => {
    if (intakes.length === 1) return first
    const tenantId = findTenant(body)
    const tenant = tenantId === null ? undefined : edge()?.directory.find(tenantId)
    return intakes[(tenant?.telemetryStream ?? 1) - 1] ?? first
  }
  return {
    admit: (submission) => findIntake(submission.body).admission.admit(submission),
    offer: (pending) => intakes[pending.acceptance.telemetryStream - 1]!.commit.offer(pending),
    queued: () => {
      const all = intakes.map(({ admission }) => admission.queued())
      return { requests: sumOf(all, 'requests'), bytes: sumOf(all, 'bytes') }
    },
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

function createIntake(options: IntakesOptions, index: number): Intake {
  const { edge, connected, process, settle, isTracing, observers, nowMs, commitLimits } = options
  const { length } = observers
  const intake: Intake = {
    admission: createAdmission<Submission>({
      process,
      // Without a broker submissions do not wait: each is refused.
      hasCapacity: () => !connected() || intake.commit.hasCapacity(),
      defer: setImmediate,
      later: setTimeout,
      nowMs,
      limits: {
        scoringSliceMs: scoringSliceMs / length,
        queuedRequestsMax: Math.floor(queuedRequestsMax / length),
        queuedBytesMax: Math.floor(queuedBytesMax / length),
      },
    }),
    commit: createGroupCommit<Pending>({
      publish: (message, batchId, timeoutMs, batch) => {
        const publish = (tracedEvents?: string) =>
          edge()!.streams[index]!.publish(message, batchId, timeoutMs, tracedEvents)
        return isTracing ? tracePublish(batch, publish) : publish()
      },
      settle,
      onSettled: () => intake.admission.resume(),
      defer: setImmediate,
      later: setTimeout,
      pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      newBatchId: options.newBatchId,
      nowMs,
      limits: commitLimits,
      observe: observers[index]!,
    }),
  }
  return intake
}
