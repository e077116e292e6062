/**
 * The time of the server. A browser's clock can be hours wrong, so time ranges and ages are counted
 * from the `Date` of the console's answers. No other file reads the browser's clock.
 */

/** Below this both clocks agree: `Date` has whole seconds, and an answer takes a while. */
const toleratedMs = 5_000

let aheadMs = 0
const listeners = new Set<() => void>()

/** Milliseconds since 1970, as the server counts them. */
export const serverNowMs = (): number => Date.now() - aheadMs

/** @param date the header of an answer that has just come */
export function noteServerTime(date: string | null): void {
  const serverMs = Date.parse(date ?? '')
  if (Number.isNaN(serverMs)) return
  const foundMs = Date.now() - serverMs
  if (Math.abs(foundMs - aheadMs) <= toleratedMs) return
  aheadMs = Math.abs(foundMs) <= toleratedMs ? 0 : foundMs
  for (const listener of listeners) listener()
}

/**
 * Calls the listener when the server's time turns out to be another than was thought.
 * @returns ends it
 */
export function onServerTimeFound(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
