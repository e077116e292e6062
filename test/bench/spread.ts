/**
 * What several rounds of one measurement say together: their median, and how far they lie apart.
 */
export type Spread = { median: number; min: number; max: number; rounds: number }

/** @param values one of each round, at least one; of an even number the middle two's mean counts */
export function toSpread(values: readonly number[]): Spread {
  if (values.length === 0) throw new Error('a spread needs at least one round')
  const sorted = [...values].sort((a, b) => a - b)
  const [low, high] = [sorted[(sorted.length - 1) >> 1]!, sorted[sorted.length >> 1]!]
  return {
    median: (low + high) / 2,
    min: sorted[0]!,
    max: sorted.at(-1)!,
    rounds: values.length,
  }
}

/** Each round's value by that round's floor: what both had to share cancels out. */
export function toRatios(values: readonly number[], floors: readonly number[]): Spread {
  return toSpread(values.map((value, round) => value / floors[round]!))
}
