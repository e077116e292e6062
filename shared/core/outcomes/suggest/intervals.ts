/**
 * Intervals of what each feature adds to the log odds of fraud. Which features get a weight is
 * decided by the same cases, and the penalty pulls weights to 0, so an interval around the weight
 * itself would hold the truth too seldom. These are of a model of their own: all features that a
 * labelled session has, chosen or not, positive or negative, with next to no penalty. So nothing is
 * selected, and every feature has an interval, also one that gets no points.
 *
 * An interval holds the values that the cases make at most so much less likely than the best one,
 * while the other features move along as they must. Unlike standard errors this holds with a few
 * cases too: a signal that only fraud has is worth at least so much, with no upper end.
 */
import type { Range } from './compare-policies.ts'
import {
  type CountedRow,
  countLikelihood,
  fitLogistic,
  type LogisticFit,
  toCovariance,
} from './fit-logistic.ts'

/** Half of chi square with one degree of freedom at 95 %: how far the log likelihood may fall. */
export const likelihoodDrop = 1.92
/** Log odds of 10 are 22,000 to 1: an end there is none. */
export const logOddsMax = 10

/** It keeps estimates finite where one class alone has a feature, and moves no other one. */
const weakPenalty = 0.05
const deviations = 1.96
/** Each search is as good as done after three looks, since likelihoods are nearly parabolas. */
const looksMax = 8
const nearEnough = 0.02

/**
 * The intervals of 95 %, by column; none of a column that no row has.
 * @param width the number of columns
 */
export function toIntervals(rows: readonly CountedRow[], width: number): Map<number, Range> {
  const seen = new Set(rows.flatMap(({ columns }) => columns))
  const fit = fitLogistic(rows, { width, penalty: weakPenalty, allowed: seen, isSigned: true })
  const open = [0, ...[...seen].sort((a, b) => a - b).map((column) => column + 1)]
  const covariance = toCovariance(rows, fit, { penalty: weakPenalty, open })
  const intervals = new Map<number, Range>()
  open.forEach((at, place) => {
    if (at === 0) return
    const column = at - 1
    const variance = covariance[place * open.length + place]!
    const moves = new Float64Array(width + 1)
    open.forEach((other, place2) => {
      moves[other] = covariance[place2 * open.length + place]! / variance
    })
    const lossAt = (distance: number) => findLoss(rows, { fit, moves, distance })
    const middle = fit.coefficients[column]!
    const guess = deviations * Math.sqrt(variance)
    const find = (sign: 1 | -1) =>
      middle +
      sign * findEnd((distance) => lossAt(sign * distance), guess, logOddsMax - sign * middle)
    intervals.set(column, { low: find(-1), high: find(1) })
  })
  return intervals
}

/** What the log likelihood loses when one column moves so far and the others follow. */
function findLoss(
  rows: readonly CountedRow[],
  { fit, moves, distance }: { fit: LogisticFit; moves: Float64Array; distance: number },
): number {
  const beta = Float64Array.from([fit.intercept, ...fit.coefficients])
  for (let at = 0; at < beta.length; at++) beta[at]! += distance * moves[at]!
  return fit.logLikelihood - countLikelihood(rows, beta, weakPenalty)
}

/** The distance at which a loss that rises reaches the drop, at most `furthest`. */
function findEnd(lossAt: (distance: number) => number, guess: number, furthest: number): number {
  const most = Math.max(0, furthest)
  let distance = Math.min(guess, most)
  for (let look = 0; look < looksMax; look++) {
    const loss = lossAt(distance)
    if (Math.abs(loss - likelihoodDrop) < nearEnough) break
    if (distance === most && loss < likelihoodDrop) break
    distance = Math.min(
      most,
      distance * Math.min(3, Math.sqrt(likelihoodDrop / Math.max(loss, 1e-9))),
    )
  }
  return distance
}
