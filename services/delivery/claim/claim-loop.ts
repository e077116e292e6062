/**
 * Claims due deliveries and starts their attempts. Hints and sweeps mark a queue as ready; the loop
 * claims from ready queues in round-robin order, as far as the send limiter allows. Under load the
 * loop waits between two claims, so that each brings many deliveries. First attempts, retries,
 * half-open probes and claims taken over from dead processes all take this path.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { DeliveryQueue, QueueLimit } from '#shared/io/deliveries/claim-deliveries.ts'
import type { DeliveryOutcome } from '#shared/io/deliveries/record-outcomes.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { DeliveryMetrics } from '../metrics.ts'
import type { FreshClaim } from '../send/attempt-delivery.ts'
import type { OutcomeRecorder } from '../send/outcome-recorder.ts'
import type { SendLimiter } from './send-limiter.ts'

type ClaimLoop = {
  /** Marks a queue as ready: a delivery of it may be due. */
  wake: (queue: DeliveryQueue) => void
  /** Stops claiming. */
  stop: () => void
  /** Resolves when no delivery is claimed or in flight. */
  idle: () => Promise<void>
}

type ClaimLoopDeps = {
  claim: (queues: readonly QueueLimit[]) => Promise<FreshClaim[]>
  /** Makes one attempt; never rejects. */
  attempt: (claimed: FreshClaim) => Promise<DeliveryOutcome>
  limiter: SendLimiter
  recorder: Pick<OutcomeRecorder, 'add' | 'waiting'>
  monotonicMs: () => number
  log: Log
  metrics: DeliveryMetrics
}

/** Queues in one claim: enough to use all slots when every tenant has the smallest limit. */
const queuesPerClaimMax = 64
/** The loop stops claiming while this many outcomes wait for Postgres. */
const outcomesWaitingMax = 1_000
const pauseAfterFailureMs = 250
/**
 * Time from the start of one claim to the next, and after a claim that brought many deliveries. A
 * claim costs Postgres half a millisecond however few it brings. An idle loop claims at once.
 */
const claimEveryMs = 5
const claimEveryUnderLoadMs = 8
const manyClaimed = 64

export function createClaimLoop(deps: ClaimLoopDeps): ClaimLoop {
  const { limiter, recorder, monotonicMs, log, metrics } = deps
  const ready = createReadyQueues(limiter)
  const work = createWorkCounter()
  let claiming = false
  let stopped = false
  let failing = false
  let lastClaimMs = Number.NEGATIVE_INFINITY
  let lastClaimed = 0

  const attempt = async (claimed: FreshClaim, queue: DeliveryQueue): Promise<void> => {
    const startMs = monotonicMs()
    const outcome = await deps.attempt(claimed)
    // An outcome without a request says nothing about the receiver.
    if (outcome.attempt !== null) {
      const ok = outcome.next.state === 'delivered'
      limiter.recordRequest(claimed.tenantId, monotonicMs() - startMs, ok)
    }
    limiter.release(queue, 1)
    recorder.add(outcome)
    work.end()
    void run()
  }
  const claimOnce = async (queues: readonly QueueLimit[]): Promise<void> => {
    work.begin()
    lastClaimMs = monotonicMs()
    try {
      const claimed = await deps.claim(queues)
      lastClaimed = claimed.length
      const { assigned, unused } = assignSlots(queues, claimed)
      for (const { delivery, queue } of assigned) {
        work.begin()
        void attempt(delivery, queue)
      }
      for (const queue of unused) {
        // A queue that used its whole limit may have more deliveries.
        if (queue.limit === 0) ready.add(queue)
        limiter.release(queue, queue.limit)
      }
      if (failing) log.info('deliveries can be claimed again')
      failing = false
    } catch (error) {
      metrics.claimFailures.inc()
      if (!failing) log.warn({ err: error }, 'deliveries cannot be claimed')
      failing = true
      for (const queue of queues) {
        limiter.release(queue, queue.limit)
        ready.add(queue)
      }
      await pause(pauseAfterFailureMs)
    } finally {
      work.end()
    }
  }
  const run = async (): Promise<void> => {
    if (claiming) return
    claiming = true
    while (!stopped && recorder.waiting() < outcomesWaitingMax) {
      const everyMs = lastClaimed < manyClaimed ? claimEveryMs : claimEveryUnderLoadMs
      const waitMs = lastClaimMs + everyMs - monotonicMs()
      if (waitMs > 0 && !ready.isEmpty()) await pause(waitMs)
      const queues = stopped ? [] : ready.acquire()
      if (queues.length === 0) break
      await claimOnce(queues)
    }
    claiming = false
  }

  return {
    wake: (queue) => {
      ready.add(queue)
      void run()
    },
    stop: () => {
      stopped = true
    },
    idle: work.idle,
  }
}

const keyOf = (queue: DeliveryQueue) => `${queue.retry ? 'r' : 'f'} ${queue.tenantId}`

/** The queues that may have something due, in round-robin order. */
function createReadyQueues(limiter: SendLimiter) {
  const ready = new Map<string, DeliveryQueue>()
  return {
    add: ({ tenantId, retry }: DeliveryQueue): void => {
      const queue = { tenantId, retry }
      const key = keyOf(queue)
      if (!ready.has(key)) ready.set(key, queue)
    },
    isEmpty: () => ready.size === 0,
    /** Acquires slots for as many queues as possible; these queues are no longer ready. */
    acquire: (): QueueLimit[] => {
      const acquired: QueueLimit[] = []
      for (const [key, queue] of ready) {
        const available = limiter.available()
        if (acquired.length === queuesPerClaimMax || available === 0) break
        const limit = limiter.acquire(queue, available)
        if (limit === 0) continue
        ready.delete(key)
        acquired.push({ ...queue, limit })
      }
      return acquired
    },
  }
}

/** Counts claims and attempts in progress. */
function createWorkCounter() {
  const waiters: (() => void)[] = []
  let count = 0
  return {
    begin: (): void => {
      count += 1
    },
    end: (): void => {
      count -= 1
      if (count > 0) return
      for (const done of waiters.splice(0)) done()
    },
    idle: (): Promise<void> =>
      count === 0 ? Promise.resolve() : new Promise((resolve) => waiters.push(resolve)),
  }
}

/**
 * Assigns each claimed delivery to the queue whose slot it uses.
 * @returns also the queues with the slots that are left of each
 */
function assignSlots(queues: readonly QueueLimit[], claimed: readonly FreshClaim[]) {
  const unused = new Map(queues.map((queue) => [keyOf(queue), { ...queue }]))
  const assigned = claimed.map((delivery) => {
    const { tenantId } = delivery
    const queue: DeliveryQueue = { tenantId, retry: delivery.attempts > 0 }
    // A half-open probe may belong to the tenant's other queue: then it uses a slot of this one.
    const used = unused.get(keyOf(queue)) ?? unused.get(keyOf({ ...queue, retry: !queue.retry }))
    if (used !== undefined) used.limit -= 1
    return { delivery, queue: { tenantId, retry: used?.retry ?? queue.retry } }
  })
  return { assigned, unused: [...unused.values()] }
}
