/**
 * Admission decides when a submission that has been read is processed: at once while group commit
 * has capacity, else in the order of arrival as messages are acknowledged. Waiting submissions are
 * plain bytes, which cost nothing until they are processed. Each turn of the event loop processes
 * for a bounded time only: with thousands of busy clients the loop otherwise reads for seconds and
 * delays acknowledgements and the renewal of the credential lease.
 */

type AdmissionOptions<S extends Arrival> = {
  /** Processes a submission now. */
  process: (submission: S) => void
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
}

export type Admission<S extends Arrival> = {
  /** Processes a submission now or queues it. A full queue processes it now. */
  admit: (submission: S) => void
  /** Call it when there may be capacity again. */
  resume: () => void
  /** Size of the queue. */
  queued: () => { requests: number; bytes: number }
  /** Resolves when every submission admitted so far has been processed. */
  drained: () => Promise<void>
}

/** How often to check for capacity without a call of `resume`: the broker may have disconnected. */
const capacityPollMs = 100

/** Creates an empty queue. */
export function createAdmission<S extends Arrival>(options: AdmissionOptions<S>): Admission<S> {
  const { process, hasCapacity, defer, later, nowMs, limits } = options
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

  const resume = (): void => {
    if (queue.length === 0) return
    beginTurn()
    let processed = 0
    while (processed < queue.length && mayProcess()) {
      const submission = queue[processed++]!
      bytes -= submission.body.length
      process(submission)
    }
    queue.splice(0, processed)
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
    const full = queue.length >= limits.queuedRequestsMax || bytes + length > limits.queuedBytesMax
    if (full || (queue.length === 0 && mayProcess())) {
      beginTurn()
      process(submission)
      return
    }
    queue.push(submission)
    bytes += length
    if (turnStartedMs === null) pollCapacity()
  }

  return {
    admit,
    resume,
    queued: () => ({ requests: queue.length, bytes }),
    drained: () =>
      new Promise((resolve) => {
        if (queue.length === 0) resolve()
        else drains.push(resolve)
      }),
  }
}
