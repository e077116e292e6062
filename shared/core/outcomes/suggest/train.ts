/**
 * From counted sessions to a model: which features say something of fraud, how much, and of which
 * too few cases are known. A feature gets a weight only where leaving it out would cost more than
 * chance explains, so a useless one gets none, and of two that mean the same the better one stays.
 */
import {
  expectedCasesMin,
  knownRatioMin,
  likelihoodRatioMin,
  penaltyDefault,
} from '#shared/core/base/limits/policies.ts'
import type { Range } from './compare-policies.ts'
import type { FeatureSet } from './features.ts'
import {
  type CountedRow,
  fitLogistic,
  type LogisticFit,
  toShare,
  toSoft,
  toStandardErrors,
} from './fit-logistic.ts'
import { likelihoodDrop, logOddsMax, toIntervals } from './intervals.ts'
import type { OutcomeRow, OutcomeTable } from './outcome-table.ts'

/** Sessions of one feature. */
export type Support = {
  fraud: number
  legitimate: number
  unlabelled: number
  judged: number
}

/**
 * - `weighed`: it predicts fraud.
 * - `useless`: there are enough cases, and it does not.
 * - `too_few`: it may or may not.
 */
export type FeatureOutcome = 'weighed' | 'useless' | 'too_few'

export type Trained = {
  fit: LogisticFit
  outcomes: readonly FeatureOutcome[]
  /** In log odds, by column; none where no labelled session has it. */
  intervals: ReadonlyMap<number, Range>
  /** Where too few cases are known, the most log odds that they allow; infinity for none. */
  ceilings: readonly number[]
}

/** The columns of each row: those of all its events. */
export function toColumns(
  rows: readonly OutcomeRow[],
  { events }: OutcomeTable,
  { columnsOf }: FeatureSet,
): number[][] {
  const byEvent = events.map(columnsOf)
  return rows.map((row) => {
    if (row.events.length === 1) return byEvent[row.events[0]!]!
    return [...new Set(row.events.flatMap((event) => byEvent[event]!))].sort((a, b) => a - b)
  })
}

/** Rows with equal columns as one, without those that no label covers. */
export function toCountedRows(
  rows: readonly OutcomeRow[],
  columns: readonly (readonly number[])[],
): CountedRow[] {
  const merged = new Map<string, CountedRow>()
  rows.forEach(({ fraud, legitimate }, at) => {
    if (fraud + legitimate === 0) return
    const own = [...columns[at]!].sort((a, b) => a - b)
    const key = own.join()
    const present = merged.get(key)
    if (present === undefined) merged.set(key, { columns: own, hits: fraud, misses: legitimate })
    else {
      present.hits += fraud
      present.misses += legitimate
    }
  })
  return [...merged.values()]
}

/** The sessions of each feature. */
export function toSupport(
  rows: readonly OutcomeRow[],
  columns: readonly (readonly number[])[],
  width: number,
): Support[] {
  const support = Array.from({ length: width }, () => {
    return { fraud: 0, legitimate: 0, unlabelled: 0, judged: 0 }
  })
  rows.forEach((row, at) => {
    for (const column of columns[at]!) {
      const own = support[column]!
      own.fraud += row.fraud
      own.legitimate += row.legitimate
      own.unlabelled += row.unlabelled
      own.judged += row.judged
    }
  })
  return support
}

/**
 * Trains on counted rows. The weakest features are left out first, each only if the rest explains
 * the outcomes about as well without it. One of too few cases that has points today needs less to
 * stay: its author knew something, and it keeps points in any case.
 * @param weighedToday of each column, whether it has points today
 */
export function train(
  rows: readonly CountedRow[],
  weighedToday: readonly boolean[],
  penalty = penaltyDefault,
): Trained {
  const width = weighedToday.length
  const allowed = new Set(Array.from({ length: width }, (_, column) => column))
  let fit = fitLogistic(rows, { width, penalty })
  for (let column = 0; column < width; column++) {
    if (fit.coefficients[column] === 0) allowed.delete(column)
  }
  let errors = toStandardErrors(rows, fit, penalty)
  const strength = (column: number) =>
    fit.coefficients[column] === 0 ? 0 : fit.coefficients[column]! / errors[column]!
  for (let isDone = false; !isDone; ) {
    isDone = true
    for (const column of [...allowed].sort((a, b) => strength(a) - strength(b))) {
      const without = new Set(allowed)
      without.delete(column)
      const less = fitLogistic(rows, { width, penalty, allowed: without, from: fit })
      const cost = 2 * (fit.logLikelihood - less.logLikelihood)
      const isKnown =
        weighedToday[column]! && countExpectedOf(rows, less, column) < expectedCasesMin
      if (cost >= (isKnown ? knownRatioMin : likelihoodRatioMin)) continue
      allowed.delete(column)
      fit = less
      isDone = false
    }
    errors = toStandardErrors(rows, fit, penalty)
  }
  const outcomes = Array.from({ length: width }, (_, column): FeatureOutcome => {
    if (fit.coefficients[column]! > 0) return 'weighed'
    return countExpectedOf(rows, fit, column) < expectedCasesMin ? 'too_few' : 'useless'
  })
  const intervals = toIntervals(rows, width)
  return { fit, outcomes, intervals, ceilings: findCeilings(rows, fit, width) }
}

/** By column that has no weight, the most log odds that its cases allow beside the others. */
function findCeilings(rows: readonly CountedRow[], fit: LogisticFit, width: number): number[] {
  const own = Array.from({ length: width }, (): { sum: number; hits: number; all: number }[] => [])
  for (const { columns, hits, misses } of rows) {
    const sum = columns.reduce((at, column) => at + fit.coefficients[column]!, fit.intercept)
    for (const column of columns) own[column]!.push({ sum, hits, all: hits + misses })
  }
  return own.map((cases) => {
    const gain = (logOdds: number) =>
      cases.reduce((total, { sum, hits, all }) => {
        return total + hits * logOdds - all * (toSoft(sum + logOdds) - toSoft(sum))
      }, 0)
    // The likelihood has one hill: climb it, then go down behind it.
    const best = bisect((at) => gain(at + 1e-4) > gain(at))
    const isAllowed = (at: number) => at <= best || gain(at) > gain(best) - likelihoodDrop
    return isAllowed(logOddsMax) ? Number.POSITIVE_INFINITY : bisect(isAllowed)
  })
}

/** Where what holds at 0 no longer does, up to `logOddsMax`. */
function bisect(holds: (at: number) => boolean): number {
  let [low, high] = [0, logOddsMax]
  if (!holds(0)) return 0
  for (let n = 0; n < 24; n++) {
    const middle = (low + high) / 2
    if (holds(middle)) low = middle
    else high = middle
  }
  return low
}

/** The cases of a column that the others explain: less its own, by chance alone. */
function countExpectedOf(rows: readonly CountedRow[], fit: LogisticFit, column: number): number {
  let expected = 0
  for (const { columns, hits, misses } of rows) {
    if (!columns.includes(column)) continue
    const share = toShare(columns.reduce((sum, one) => sum + fit.coefficients[one]!, fit.intercept))
    expected += (hits + misses) * share * (1 - share)
  }
  return expected
}
