/**
 * Reads the verdict keys for any number of requests with one query a second. While this
 * process has no Postgres the last answer counts for some minutes. A console that has it may rotate
 * the keys meanwhile, so a new key signs only once such answers have expired.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createKept } from '#shared/core/base/kept-value.ts'
import {
  verdictKeysReadEveryMs,
  verdictKeysStaleMsMax,
  verdictKeysWaitMs,
} from '#shared/core/base/limits/rest-api.ts'
import type { VerdictKeySet } from '#shared/core/verdicts/verdict-keys.ts'

type ReaderDeps = {
  /** @param nowMs the wall clock */
  readKeys: (nowMs: number) => Promise<VerdictKeySet>
  /** The wall clock, and one that never goes back. */
  nowMs: () => number
  monotonicMs: () => number
  /** Called once for each read that fails. */
  onFailed?: (error: unknown) => void
  pause?: (ms: number) => Promise<unknown>
}

/** @returns a function that throws what `readKeys` throws when it knows no keys */
export function createVerdictKeyReader(deps: ReaderDeps): () => Promise<VerdictKeySet> {
  const { readKeys, nowMs, monotonicMs, onFailed } = deps
  const kept = createKept({
    read: () => readKeys(nowMs()),
    nowMs: monotonicMs,
    pause: deps.pause ?? ((ms) => sleep(ms, null, { ref: false })),
    // Before there is a key each request looks: the first one may sign as soon as it is there.
    isFinal: ({ keys }) => keys.length > 0,
    ...(onFailed === undefined ? {} : { onFailed }),
    rules: {
      freshMs: verdictKeysReadEveryMs,
      staleMsMax: verdictKeysStaleMsMax,
      retryMs: verdictKeysReadEveryMs,
      waitMs: verdictKeysWaitMs,
    },
  })
  return kept.get
}
