/** Figures of a suggestion in words, as `di policy suggest` prints them. */

type Rate = { rate: number | null; low: number; high: number }

export const toCount = (value: number): string => value.toLocaleString('en')

export const toPercent = (share: number): string => `${(100 * share).toFixed(1)} %`

export const toRange = ({ low, high }: { low: number; high: number }): string =>
  `${toPercent(low)} to ${toPercent(high)}`

/** A rate with its interval of 95 %. */
export const toRate = (rate: Rate): string =>
  rate.rate === null ? 'too few to say' : `${toPercent(rate.rate)} (${toRange(rate)})`
