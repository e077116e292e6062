/**
 * Signals every attempt in flight that the process stops. An AbortSignal removes a listener in
 * linear time, and there are as many listeners as requests in flight; this one takes constant time.
 */
export type StopSignal = {
  readonly stopped: boolean
  addListener: (onStop: () => void) => void
  removeListener: (onStop: () => void) => void
}

export function createStopSignal(): StopSignal & { stop: () => void } {
  const listeners = new Set<() => void>()
  let stopped = false
  return {
    get stopped() {
      return stopped
    },
    addListener: (onStop) => {
      listeners.add(onStop)
    },
    removeListener: (onStop) => {
      listeners.delete(onStop)
    },
    stop: () => {
      stopped = true
      for (const onStop of [...listeners]) onStop()
      listeners.clear()
    },
  }
}
