/** A pause that can be aborted, and a wait with a time limit. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Ends early, without an error, when it is aborted. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined)
}

/**
 * Waits for `work` up to a time limit; `work` continues afterwards.
 * @returns whether it ended in time
 * @throws the error of `work`, if it fails in time; later errors are ignored
 */
export async function within(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, limitMs, false)
  })
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}
