/** What several rounds of one measurement say together: their median, and how far they lie apart. */
import { percentile } from '../faults/percentile.ts'

export type Spread = { median: number; min: number; max: number; rounds: number }

/** @param values one of each round, at least one */
export function toSpread(values: readonly number[]): Spread {
  if (values.length === 0) throw new Error('a spread needs at least one round')
  return {
    median: percentile(values, 0.5),
    min: Math.min(...values),
    max: Math.max(...values),
    rounds: values.length,
  }
}

/** Each round's value by that round's floor: what both had to share cancels out. */
export function toRatios(values: readonly number[], floors: readonly number[]): Spread {
  return toSpread(values.map((value, round) => value / floors[round]!))
}
