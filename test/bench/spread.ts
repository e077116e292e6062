/** Summarises the rounds of one measurement: the median and the spread. */
export type Spread = { median: number; min: number; max: number; rounds: number }

/**
 * @param values one per round, at least one; for an even number the median is the mean of the
 * middle two
 */
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

/** Each round's value divided by that round's baseline: common disturbances cancel out. */
export function toRatios(values: readonly number[], baselines: readonly number[]): Spread {
  return toSpread(values.map((value, round) => value / baselines[round]!))
}
