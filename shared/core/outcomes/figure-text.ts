/** Rates, their intervals and money as texts: the same in the console and on the command line. */
import type { Rate } from './wilson.ts'

/** Two digits, and one behind the point where they are not two: 0.4, 8.7, 35 and 99.2. */
function toPercentDigits(share: number): string {
  if (share === 0 || share === 1) return String(100 * share)
  const percent = Math.round(1000 * share) / 10
  return percent < 10 || percent > 99 ? percent.toFixed(1) : percent.toFixed(0)
}

/** A share of 0 to 1. */
export const toPercentText = (share: number): string => `${toPercentDigits(share)} %`

/** A share with the interval that holds the true one: `93 % (88 to 96)`. */
export const withRange = (share: number, { low, high }: Pick<Rate, 'low' | 'high'>): string =>
  `${toPercentText(share)} (${toPercentDigits(low)} to ${toPercentDigits(high)})`

/** A rate with its interval of 95 %. */
export const toRateText = (rate: Rate): string =>
  rate.rate === null ? 'too few to say' : withRange(rate.rate, rate)

/** A decimal text with a comma between thousands: `22,827.00`. */
export function toAmountText(amount: string): string {
  const [whole = '', behind] = amount.split('.')
  const grouped = BigInt(whole).toLocaleString('en')
  return behind === undefined ? grouped : `${grouped}.${behind}`
}

const toPoints = (share: number): string => (100 * Math.abs(share)).toFixed(1)

/** How many points more a share may be: `2.1 points less to 10.2 points more`. */
export function toGainText({ low, high }: Pick<Rate, 'low' | 'high'>): string {
  if (low >= 0) return `${toPoints(low)} to ${toPoints(high)} points more`
  if (high <= 0) return `${toPoints(high)} to ${toPoints(low)} points less`
  return `${toPoints(low)} points less to ${toPoints(high)} points more`
}
