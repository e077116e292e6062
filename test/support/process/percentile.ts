/** Percentiles by the nearest rank: always a value that occurred. */

/** @param rank in (0, 1]; @returns NaN for an empty list */
export function percentile(values: readonly number[], rank: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.ceil(rank * sorted.length) - 1] ?? Number.NaN
}
