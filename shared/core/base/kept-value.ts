/**
 * A value of somewhere else, such as the keys of a service, that is kept and read again: however
 * many ask, and whether reading succeeds, fails or hangs, it is read at most once in a while, and
 * the last value counts meanwhile up to a stated age. A failed read is remembered.
 */

export type KeptRules = {
  /** A younger value is not read again. */
  freshMs: number
  /** An older value counts no more. */
  staleMsMax: number
  /** From the start of a read until the next one, where it failed or had not what was looked for. */
  retryMs: number
  /** How long a caller waits for a read in place of taking the last value at once. */
  waitMs: number
}

export type KeptDeps<T> = {
  read: () => Promise<T>
  nowMs: () => number
  rules: KeptRules
  /** Needed where `rules.waitMs` is above 0. */
  pause?: (ms: number) => Promise<unknown>
  /** A value that may change at any moment is never fresh. Left out, all are final. */
  isFinal?: (value: T) => boolean
  /** Called once for each failed read. */
  onFailed?: (error: unknown) => void
}

export type KeptState<T> = {
  last: { value: T; atMs: number } | null
  /** Of the last read, when it failed: null from the next success on. */
  failure: { error: unknown; atMs: number } | null
}

export type Kept<T> = {
  /**
   * The value: a fresh one, the last one, or the one that is read now.
   * @throws what the last read threw, when no value is left that counts
   */
  get: () => Promise<T>
  /**
   * The value for a caller that misses something in it: read again, unless that was just done.
   * @throws what the last read threw
   */
  look: () => Promise<T>
  state: () => KeptState<T>
}

export function createKept<T>(deps: KeptDeps<T>): Kept<T> {
  const { read, nowMs, rules, isFinal = () => true } = deps
  const state: KeptState<T> = { last: null, failure: null }
  let startedAtMs = Number.NEGATIVE_INFINITY
  let reading: Promise<T> | null = null
  /** How long ago; infinite where the clock was put back. */
  const since = (atMs: number): number => {
    const ms = nowMs() - atMs
    return ms >= 0 ? ms : Number.POSITIVE_INFINITY
  }
  const start = (): Promise<T> => {
    const atMs = nowMs()
    startedAtMs = atMs
    const started = Promise.resolve()
      .then(read)
      .then(
        (value) => {
          state.last = { value, atMs }
          state.failure = null
          return value
        },
        (error: unknown) => {
          state.failure = { error, atMs }
          deps.onFailed?.(error)
          throw error
        },
      )
      .finally(() => {
        reading = null
      })
    // Where the last value counts, no caller takes this one.
    started.catch(() => {})
    reading = started
    return started
  }
  const mayStart = () => since(startedAtMs) >= rules.retryMs

  return {
    state: () => ({ ...state }),
    get: async () => {
      const { last, failure } = state
      const ageMs = last === null ? Number.POSITIVE_INFINITY : since(last.atMs)
      if (last !== null && isFinal(last.value) && ageMs < rules.freshMs) return last.value
      const usable = ageMs < rules.staleMsMax ? last : null
      if (reading === null && failure !== null && !mayStart()) {
        if (usable !== null) return usable.value
        throw failure.error
      }
      const current = reading ?? start()
      if (usable === null) return current
      const leftMs = rules.waitMs - since(startedAtMs)
      if (leftMs <= 0 || deps.pause === undefined) return usable.value
      const late = deps.pause(leftMs).then(() => usable.value)
      return Promise.race([current, late]).catch(() => usable.value)
    },
    look: async () => {
      if (reading !== null) return reading
      if (mayStart()) return start()
      const { last, failure } = state
      if (failure !== null || last === null) throw failure?.error
      return last.value
    },
  }
}
