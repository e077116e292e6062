/** A wait that ends early, and without an error, when it is called off. */
import { setTimeout as sleep } from 'node:timers/promises'

export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined)
}
