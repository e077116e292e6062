/**
 * The retry schedule of a delivery. Jitter and `Retry-After` only add delay. After the last retry
 * the delivery is `failed` and stays replayable.
 */
import { retryAfterDelayMaxMs } from '#shared/core/base/limits/deliveries.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** The wait before attempt 2, 3, ...: eleven attempts over about 52 hours. */
export const retryDelaysMs: readonly number[] = [
  5 * second,
  30 * second,
  2 * minute,
  10 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
]

/** Jitter adds up to a tenth of the step. */
const jitterShare = 0.1

/**
 * The wait after a failed attempt, or null when the schedule is exhausted.
 * @param attempt the attempt that failed, from 1
 * @param random a random number in [0, 1)
 * @param retryAfterMs the receiver's `Retry-After` on a 429 or 503, or null
 * @returns milliseconds, or null
 */
export function retryDelayMs(
  attempt: number,
  random: number,
  retryAfterMs: number | null = null,
): number | null {
  const base = retryDelaysMs[attempt - 1]
  if (base === undefined) return null
  const planned = base + Math.floor(base * jitterShare * random)
  return Math.max(planned, Math.min(retryAfterMs ?? 0, retryAfterDelayMaxMs))
}

/**
 * Parses a `Retry-After` header: whole seconds, or an HTTP date. Anything else counts as absent.
 * @returns milliseconds from now, never negative, or null
 */
export function parseRetryAfterMs(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null
  const text = header.trim()
  if (/^\d{1,10}$/.test(text)) return Number(text) * 1_000
  if (!/^[A-Z][a-z]{2,8}, /.test(text)) return null
  const at = Date.parse(text)
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs)
}
