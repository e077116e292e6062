/**
 * Delays the responses to a tenant over a limit. A client that retries immediately then sends a few
 * requests per second instead of thousands. The number of delayed responses is bounded, since each
 * occupies a connection; beyond it responses are immediate.
 */

export type RefusalDelay = {
  /** Calls `respond` after the delay, or immediately. */
  delay: (respond: () => void) => void
  /** Number of responses delayed now. */
  delayed: () => number
}

type RefusalDelayOptions = {
  later: (run: () => void, ms: number) => void
  /** A stopping process responds immediately. */
  stopping: () => boolean
  delayMs: number
  delayedMax: number
}

export function createRefusalDelay(options: RefusalDelayOptions): RefusalDelay {
  const { later, stopping, delayMs, delayedMax } = options
  let delayed = 0
  return {
    delayed: () => delayed,
    delay: (respond) => {
      if (delayed >= delayedMax || stopping()) return respond()
      delayed++
      later(() => {
        delayed--
        respond()
      }, delayMs)
    },
  }
}
