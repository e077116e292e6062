/**
 * Admission decides when a submission that has been read is processed: at once while group commit
 * has capacity, else in the order of arrival as messages are acknowledged. Waiting submissions are
 * plain bytes, which cost nothing until they are processed. Each turn of the event loop processes
 * for a bounded time only: with thousands of busy clients the loop otherwise reads for seconds and
 * delays acknowledgements and the renewal of the credential lease.
 *
 * Under overload some must be refused, and work on those is lost for the others. So one that has
 * waited too long is refused before anything is done for it, and the newest come first: in the
 * order of arrival all would be processed just before their time is over.
 */

type AdmissionOptions<S extends Arrival> = {
  /** Processes a submission now. */
  process: (submission: S) => void
  /** Refuses a submission for which there is no room or no time, with as little work as possible. */
  refuse: (submission: S) => void
  /**
   * Whether an accepted submission can be stored, or be refused for a reason that does not pass.
   */
  hasCapacity: () => boolean
  /** Runs a function at the end of this turn of the event loop. */
  defer: (run: () => void) => void
  /** Runs a function after so many ms. */
  later: (run: () => void, ms: number) => void
  /** The monotonic clock. */
  nowMs: () => number
  limits: AdmissionLimits
}

/** A submission as it was read. */
export type Arrival = {
  body: Uint8Array
  /** When its body was complete, on the monotonic clock. */
  arrivedMs: number
}

type AdmissionLimits = {
  /** Processing time per turn of the event loop. */
  scoringSliceMs: number
  queuedRequestsMax: number
  queuedBytesMax: number
  /** A submission that has waited longer is refused. */
  queuedMsMax: number
  /** The newest come first while the oldest has waited longer. */
  newestFirstMs: number
}

export type Admission<S extends Arrival> = {
  /** Processes a submission now or queues it. A full queue refuses it. */
  admit: (submission: S) => void
  /** Call it when there may be capacity again. */
  resume: () => void
  /** Whether so many submissions wait that some of them will be refused. */
  overloaded: () => boolean
  /** Size of the queue. */
  queued: () => { requests: number; bytes: number }
  /** Resolves when every submission admitted so far has been processed. */
  drained: () => Promise<void>
}

/** How often to check for capacity without a call of `resume`: the broker may have disconnected. */
const capacityPollMs = 100

/** Creates an empty queue. */
export function createAdmission<S extends Arrival>(options: AdmissionOptions<S>): Admission<S> {
  const { process, refuse, hasCapacity, defer, later, nowMs, limits } = options
  /** In the order of arrival. */
  const queue: S[] = []
  let bytes = 0
  /** When this turn of the event loop started to process; null before that. */
  let turnStartedMs: number | null = null
  let polling = false
  let drains: (() => void)[] = []

  const beginTurn = (): void => {
    if (turnStartedMs !== null) return
    turnStartedMs = nowMs()
    defer(() => {
      turnStartedMs = null
      resume()
    })
  }

  const mayProcess = (): boolean => {
    if (turnStartedMs !== null && nowMs() - turnStartedMs >= limits.scoringSliceMs) return false
    return hasCapacity()
  }

  const pollCapacity = (): void => {
    if (polling) return
    polling = true
    later(() => {
      polling = false
      resume()
    }, capacityPollMs)
  }

  /** Whether the oldest has waited longer than so many ms. */
  const isOlderThan = (ms: number): boolean =>
    queue.length > 0 && nowMs() - queue[0]!.arrivedMs > ms

  const take = (submission: S | undefined): S => {
    bytes -= submission!.body.length
    return submission!
  }

  const overloaded = (): boolean => isOlderThan(limits.newestFirstMs)

  /** For as long as this turn may process: many at once would hold the event loop. */
  const refuseExpired = (): void => {
    const startedMs = nowMs()
    while (isOlderThan(limits.queuedMsMax) && nowMs() - startedMs < limits.scoringSliceMs) {
      refuse(take(queue.shift()))
    }
  }

  const resume = (): void => {
    if (queue.length === 0) return
    beginTurn()
    const isNewestInTime = () => nowMs() - queue.at(-1)!.arrivedMs <= limits.queuedMsMax
    while (queue.length > 0 && isNewestInTime() && mayProcess()) {
      process(take(overloaded() ? queue.pop() : queue.shift()))
    }
    refuseExpired()
    if (queue.length > 0) {
      pollCapacity()
      return
    }
    const resolves = drains
    drains = []
    for (const resolve of resolves) resolve()
  }

  const admit = (submission: S): void => {
    const { length } = submission.body
    if (queue.length === 0 && mayProcess()) {
      beginTurn()
      process(submission)
      return
    }
    if (queue.length >= limits.queuedRequestsMax || bytes + length > limits.queuedBytesMax) {
      refuse(submission)
      return
    }
    queue.push(submission)
    bytes += length
    if (turnStartedMs === null) pollCapacity()
  }

  return {
    admit,
    resume,
    overloaded,
    queued: () => ({ requests: queue.length, bytes }),
    drained: () =>
      new Promise((resolve) => {
        if (queue.length === 0) resolve()
        else drains.push(resolve)
      }),
  }
}
