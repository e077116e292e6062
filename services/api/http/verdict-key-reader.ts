/**
 * Reads the verdict keys for any number of requests with one query a second. While this
 * process has no Postgres the last answer counts for some minutes. A console that has it may rotate
 * the keys meanwhile, so a new key signs only once such answers have expired.
 */
import { verdictKeysReadEveryMs, verdictKeysStaleMsMax } from '#shared/core/base/limits/rest-api.ts'
import type { VerdictKeySet } from '#shared/core/verdicts/verdict-keys.ts'

type ReaderDeps = {
  /** @param nowMs the wall clock */
  readKeys: (nowMs: number) => Promise<VerdictKeySet>
  /** The wall clock, and one that never goes back. */
  nowMs: () => number
  monotonicMs: () => number
}

/** @returns a function that throws what `readKeys` throws when it knows no keys */
export function createVerdictKeyReader(deps: ReaderDeps): () => Promise<VerdictKeySet> {
  const { readKeys, nowMs, monotonicMs } = deps
  let known: { keys: VerdictKeySet; atMs: number } | null = null
  let reading: Promise<VerdictKeySet> | null = null
  const read = async () => {
    const atMs = monotonicMs()
    try {
      const keys = await readKeys(nowMs())
      known = { keys, atMs }
      return keys
    } catch (error) {
      if (known === null || monotonicMs() - known.atMs > verdictKeysStaleMsMax) throw error
      return known.keys
    } finally {
      reading = null
    }
  }
  return () => {
    // Before there is a key each request looks: the first one may sign as soon as it is there.
    const isFresh =
      known !== null &&
      known.keys.keys.length > 0 &&
      monotonicMs() - known.atMs < verdictKeysReadEveryMs
    if (isFresh) return Promise.resolve(known!.keys)
    reading ??= read()
    return reading
  }
}
