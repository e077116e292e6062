/**
 * Requests at a constant rate, at any speed of the responses. After a pause all due requests are
 * sent at once.
 */

export type OpenLoop = {
  /** Adds other work to what `stop` waits for. */
  track: (work: Promise<unknown>) => void
  /** Pieces of work that have not ended. */
  open: () => number
  /** Starts nothing new, and resolves when all work has ended. */
  stop: () => Promise<void>
}

const tickMs = 2

/** @param send starts one request; `dueMs` is its scheduled time on the monotonic clock */
export function startOpenLoop(
  ratePerSecond: number,
  send: (dueMs: number) => Promise<unknown>,
): OpenLoop {
  const open = new Set<Promise<unknown>>()
  const track = (work: Promise<unknown>) => {
    const tracked: Promise<unknown> = work.finally(() => open.delete(tracked))
    open.add(tracked)
  }
  const startMs = performance.now()
  let sent = 0
  const timer = setInterval(() => {
    for (;;) {
      const dueMs = startMs + (sent * 1_000) / ratePerSecond
      if (dueMs > performance.now()) return
      sent++
      track(send(dueMs))
    }
  }, tickMs)
  return {
    track,
    open: () => open.size,
    stop: async () => {
      clearInterval(timer)
      while (open.size > 0) await Promise.all(open)
    },
  }
}
