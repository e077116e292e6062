// Waiting in tests: for a condition, never for a fixed time.
import { setTimeout as pause } from 'node:timers/promises'

/** Between two checks: a share of the time waited, as a check can cost more than the work itself. */
const pauseMs = { least: 10, most: 100, share: 0.05 }

/** Against a hang only: a loaded machine takes minutes. */
export const patientMs = 580_000

/**
 * @param limitMs against a hang only
 * @returns the first truthy result of `condition`
 * @throws the last error of `condition` at the time limit
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  limitMs = patientMs,
): Promise<NonNullable<T>> {
  const begunMs = performance.now()
  const deadline = begunMs + limitMs
  let failure: unknown
  while (performance.now() < deadline) {
    try {
      const value = await condition()
      if (value) return value
      failure = undefined
    } catch (error) {
      failure = error
    }
    const waitedMs = performance.now() - begunMs
    await pause(Math.min(pauseMs.most, Math.max(pauseMs.least, waitedMs * pauseMs.share)))
  }
  throw new Error(`gave up after ${limitMs} ms: ${what}`, { cause: failure })
}

/** Stores limit the time of their queries, which a busy machine may need for itself. */
export const inTime = <T>(query: () => Promise<T>) => until('an answer in time', query)
