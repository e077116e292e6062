/**
 * The interval of a rate by Wilson: it stays within 0 and 1, and is wide where there are few cases.
 * A rate of fewer cases than `casesMin` is null, which is shown as "too few to say". The same in
 * SQL, so that every figure has equal digits.
 */
import { casesMin } from '#shared/core/base/limits/outcomes.ts'

/** A rate with its interval: the true rate is between `low` and `high` with 95 % confidence. */
export type Rate = { rate: number | null; low: number; high: number }

const z = 1.96
const zSquared = 3.8416

/** Of `total` cases, `hits` were so. Both are whole numbers, `hits` at most `total`. */
export function toRate(hits: number, total: number): Rate {
  const middle = (hits + zSquared / 2) / (total + zSquared)
  const spread = total === 0 ? 0 : (hits * (total - hits)) / total
  const half = (z * Math.sqrt(spread + zSquared / 4)) / (total + zSquared)
  return {
    rate: total < casesMin ? null : hits / total,
    low: hits === 0 ? 0 : Math.max(0, middle - half),
    high: hits === total ? 1 : Math.min(1, middle + half),
  }
}

/** The same as SQL of ClickHouse, from the SQL of two whole numbers. */
export function toRateSql(hits: string, total: string): { [Key in keyof Rate]: string } {
  const middle = `(${hits} + ${zSquared / 2}) / (${total} + ${zSquared})`
  const spread = `if(${total} = 0, 0, ${hits} * (${total} - ${hits}) / ${total})`
  const half = `${z} * sqrt(${spread} + ${zSquared / 4}) / (${total} + ${zSquared})`
  return {
    rate: `if(${total} < ${casesMin}, null, ${hits} / ${total})`,
    low: `if(${hits} = 0, 0, greatest(0, ${middle} - ${half}))`,
    high: `if(${hits} = ${total}, 1, least(1, ${middle} + ${half}))`,
  }
}
