/** Waits with an end: a pause that can be called off, and work that is waited for only so long. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Ends early, and without an error, when it is called off. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined)
}

/**
 * Waits for `work`, but no longer than this; it goes on either way.
 * @returns whether it ended in time
 * @throws what `work` does in time; what it throws later nobody hears
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
