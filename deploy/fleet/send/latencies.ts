/**
 * Durations in a fixed amount of memory: logarithmic buckets two per cent wide. Percentiles are
 * exact to one per cent, the maximum is exact.
 */

export type LatencySummary = { p50: number; p95: number; p99: number; max: number; count: number }

export type Latencies = {
  record(ms: number): void
  /** The value that a share of all recorded values does not exceed; 0 without values. */
  percentile(share: number): number
  summary(): LatencySummary
  clear(): void
}

const growth = 1.02
const smallestMs = 0.05
// 1.02 ^ 900 * 0.05 ms is above 45 minutes: longer than any request lasts.
const bucketsMax = 900

export function createLatencies(): Latencies {
  const buckets = new Float64Array(bucketsMax)
  let count = 0
  let max = 0
  const percentile = (share: number) => {
    if (count === 0) return 0
    let left = Math.ceil(count * share)
    for (let at = 0; at < bucketsMax; at++) {
      left -= buckets[at]!
      if (left <= 0) return Math.min(max, smallestMs * growth ** (at + 0.5))
    }
    return max
  }
  return {
    record(ms) {
      const at = Math.floor(Math.log(Math.max(ms, smallestMs) / smallestMs) / Math.log(growth))
      buckets[Math.min(at, bucketsMax - 1)]! += 1
      count++
      max = Math.max(max, ms)
    },
    percentile,
    summary: () => ({
      p50: round(percentile(0.5)),
      p95: round(percentile(0.95)),
      p99: round(percentile(0.99)),
      max: round(max),
      count,
    }),
    clear() {
      buckets.fill(0)
      count = 0
      max = 0
    },
  }
}

/** Two decimals below ten milliseconds, one below a thousand, none above. */
function round(ms: number): number {
  const factor = ms < 10 ? 100 : ms < 1_000 ? 10 : 1
  return Math.round(ms * factor) / factor
}
