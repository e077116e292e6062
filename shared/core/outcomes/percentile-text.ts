/** Where a risk score stands among those of the tenant's sessions, in words. */

/** @param percentile undefined while it is not known: then nothing is said */
export const toPercentileText = (percentile: number | undefined): string | null =>
  percentile === undefined ? null : `higher than ${percentile.toFixed(1)} % of your fleet`

/** The score with its percentile, where that is known. */
export const withPercentile = (score: number, percentile: number | undefined): string =>
  [score, toPercentileText(percentile)].filter((part) => part !== null).join(', ')
