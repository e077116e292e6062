/**
 * The process's end, told to every attempt in flight. An AbortSignal would do, but taking one of
 * its listeners away walks past all the others, and there are as many as requests in flight.
 */
export type Stop = {
  readonly stopped: boolean
  /** Calls back when the process stops; the same function is to be taken away when it is done. */
  add: (onStop: () => void) => void
  remove: (onStop: () => void) => void
}

/** A stop that has not happened yet, and the way to make it happen. */
export function createStop(): Stop & { stop: () => void } {
  const waiting = new Set<() => void>()
  let stopped = false
  return {
    get stopped() {
      return stopped
    },
    add: (onStop) => {
      waiting.add(onStop)
    },
    remove: (onStop) => {
      waiting.delete(onStop)
    },
    stop: () => {
      stopped = true
      for (const onStop of [...waiting]) onStop()
      waiting.clear()
    },
  }
}
