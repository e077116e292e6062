/**
 * Keys that proved to be heavy, remembered for a while so that the next question about one of them
 * is asked in the way that suits it. Forgetting one costs time, never an answer.
 */

export type RememberedKeys = {
  add: (key: string) => void
  has: (key: string) => boolean
  /** Whether none is remembered: then nobody need be asked about. */
  isEmpty: () => boolean
}

/**
 * @param max keys at once; when there are as many, all are forgotten
 * @param forMs how long a key is remembered after it was last added, in ms
 * @param monotonicMs a clock that only goes forward
 */
export function createRememberedKeys(
  { max, forMs }: { max: number; forMs: number },
  monotonicMs: () => number,
): RememberedKeys {
  const untilMs = new Map<string, number>()
  return {
    add: (key) => {
      if (untilMs.size >= max && !untilMs.has(key)) untilMs.clear()
      untilMs.set(key, monotonicMs() + forMs)
    },
    has: (key) => {
      const until = untilMs.get(key)
      if (until === undefined) return false
      if (until > monotonicMs()) return true
      untilMs.delete(key)
      return false
    },
    isEmpty: () => untilMs.size === 0,
  }
}
