/** The reference model of signal flips: the definition without any optimisation. */
import { watchedSignals } from '#shared/core/signals/watched-signals.ts'
import type { FlipCount, FlipObservation } from '#shared/core/velocity/signal-flips.ts'

/**
 * Counts the flips in the window of one event by their definition.
 * @returns the most flips of any one signal; of equal counts the signal listed first
 */
export function countFlipsByDefinition(
  known: readonly FlipObservation[],
  at: { streamOffset: number; atMs: number },
  windowMs: number,
): FlipCount {
  const events = new Set<string>()
  const seen = known
    .filter((one) => one.streamOffset <= at.streamOffset && one.atMs > at.atMs - windowMs)
    .sort((a, b) => a.streamOffset - b.streamOffset)
    .filter((one) => !events.has(one.event) && events.add(one.event))
  let best: FlipCount = { flips: 0, signal: null }
  watchedSignals.forEach((signal, bit) => {
    const has = ([low, high]: readonly [number, number]) =>
      ((bit < 32 ? low : high) & (1 << (bit & 31))) !== 0
    const values = seen.flatMap((one) => (has(one.detected) ? 'D' : has(one.clean) ? 'C' : []))
    const flips = values.filter((value, index) => index > 0 && value !== values[index - 1]).length
    if (flips > best.flips) best = { flips, signal }
  })
  return best
}
