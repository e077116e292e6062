/**
 * Admission: when a submission that has been read is decided on. At once, as long as little waits;
 * else in the order of arrival, as messages are acknowledged, so that a crowd waits as bytes, which
 * cost nothing until they are decided on, and hardly anything before. In one turn of the event loop
 * decisions take their share of time and no more: while the loop still has connections to read it
 * comes to nothing else, not to the acknowledgements that make room nor to the timer that renews
 * the credential lease, and thousands of clients keep it reading for seconds.
 */

export type AdmissionOptions<R extends Arrival> = {
  /** Decides on a request now, whatever waits. */
  decide: (request: R) => void
  /** Whether what is accepted now can be held until it is stored, or refused for good reason. */
  hasRoom: () => boolean
  /** Runs something at the end of this turn of the event loop. */
  defer: (run: () => void) => void
  /** Runs something after so many ms. */
  later: (run: () => void, ms: number) => void
  nowMs: () => number
  limits: AdmissionLimits
}

/** A request as it was read. */
export type Arrival = {
  body: Uint8Array
  /** When it was whole, on the monotonic clock. */
  arrivedMs: number
}

export type AdmissionLimits = {
  /** Time for decisions in one turn of the event loop. */
  scoringSliceMs: number
  queuedRequestsMax: number
  queuedBytesMax: number
}

export type Admission<R extends Arrival> = {
  /** Decides on it now, or in its turn. Where no more can be queued it is decided on now. */
  admit: (request: R) => void
  /** There may be room again. */
  resume: () => void
  /** What is not decided on yet. */
  queued: () => { requests: number; bytes: number }
  /** Resolves once everything admitted so far is decided on. */
  drained: () => Promise<void>
}

/** How often it is looked whether there is room that nobody told of: the broker may have gone. */
const lookMs = 100

export function createAdmission<R extends Arrival>(options: AdmissionOptions<R>): Admission<R> {
  const { decide, hasRoom, defer, later, nowMs, limits } = options
  const queue: R[] = []
  let bytes = 0
  /** When this turn of the event loop began to decide. */
  let turnMs: number | null = null
  let looking = false
  let drains: (() => void)[] = []

  const beginTurn = (): void => {
    if (turnMs !== null) return
    turnMs = nowMs()
    defer(() => {
      turnMs = null
      resume()
    })
  }

  const mayDecide = (): boolean => {
    if (turnMs !== null && nowMs() - turnMs >= limits.scoringSliceMs) return false
    return hasRoom()
  }

  const look = (): void => {
    if (looking) return
    looking = true
    later(() => {
      looking = false
      resume()
    }, lookMs)
  }

  const resume = (): void => {
    if (queue.length === 0) return
    beginTurn()
    let decided = 0
    while (decided < queue.length && mayDecide()) {
      const request = queue[decided++]!
      bytes -= request.body.length
      decide(request)
    }
    queue.splice(0, decided)
    if (queue.length > 0) {
      look()
      return
    }
    const resolves = drains
    drains = []
    for (const resolve of resolves) resolve()
  }

  return {
    admit: (request) => {
      const { length } = request.body
      const full =
        queue.length >= limits.queuedRequestsMax || bytes + length > limits.queuedBytesMax
      if (full || (queue.length === 0 && mayDecide())) {
        beginTurn()
        decide(request)
        return
      }
      queue.push(request)
      bytes += length
      if (turnMs === null) look()
    },
    resume,
    queued: () => ({ requests: queue.length, bytes }),
    drained: () =>
      new Promise((resolve) => {
        if (queue.length === 0) resolve()
        else drains.push(resolve)
      }),
  }
}
