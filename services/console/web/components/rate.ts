/** A rate as the pages write it. */
const toPercent = (share: number): string => `${(100 * share).toFixed(1)} %`

/** With the range that contains the true one with 95 % confidence. */
export const toRateText = ({
  rate,
  low,
  high,
}: {
  rate: number | null
  low: number
  high: number
}): string =>
  rate === null ? 'too few to say' : `${toPercent(rate)} (${toPercent(low)} to ${toPercent(high)})`
