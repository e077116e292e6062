/**
 * Logistic regression with an L2 penalty and coefficients of at least 0, over counted rows of yes
 * and no columns. The intercept is free and has no penalty.
 *
 * It is written here because no package of npm has both. `ml-logistic-regression` 2.0.0 takes
 * 50,000 steps of one length, without intercept, penalty, counts or bounds.
 * `@kobra-dev/js-regression` 1.0.12 descends by a gradient of another penalty than that of its
 * cost, a factor of the number of rows apart, penalises the intercept and has no bounds. `glm`
 * 1.0.0 says "none supported yet" of penalties. `fmin` 0.0.4 and L-BFGS of `optimization-js` 1.5.0
 * minimise without bounds; nobody has carried L-BFGS-B over. `ml-fcnnls` 3.0.0 has the bounds for
 * least squares and could take the step below, by a factor of the Hessian, for a second package of
 * matrices in place of twenty lines.
 */
import { newtonStepsMax } from '#shared/core/base/limits/policies.ts'

/** Cases with equal columns: how many turned out to be so, and how many not. */
export type CountedRow = { columns: readonly number[]; hits: number; misses: number }

export type LogisticFit = {
  intercept: number
  coefficients: Float64Array
  /** Penalised, at the solution. */
  logLikelihood: number
  /** Whether the last step was shorter than the tolerance. */
  converged: boolean
}

export type FitOptions = {
  /** The number of columns. */
  width: number
  /** Lambda of lambda / 2 times the sum of squares. */
  penalty: number
  /** Columns whose coefficient may be above 0; all when left out. */
  allowed?: ReadonlySet<number> | undefined
  /** Where to begin, such as an earlier solution. */
  from?: Pick<LogisticFit, 'intercept' | 'coefficients'> | undefined
  /** Coefficients may be below 0 as well. */
  isSigned?: boolean
}

const stepMin = 1e-10
const sweepsMax = 2_000
const halvingsMax = 40

/** The log odds of a share. */
export const toLogOdds = (share: number): number => Math.log(share / (1 - share))

/** The share of log odds. */
export const toShare = (logOdds: number): number => 1 / (1 + Math.exp(-logOdds))

/** log(1 + e^x), which neither overflows nor loses small values. */
export const toSoft = (x: number): number => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)))

/**
 * Fits by Newton's method: each step minimises the quadratic model under the bounds, by coordinate
 * descent, and is halved until it improves.
 */
export function fitLogistic(rows: readonly CountedRow[], options: FitOptions): LogisticFit {
  const { width, penalty, allowed, from, isSigned = false } = options
  // Index 0 is the intercept.
  const beta = new Float64Array(width + 1)
  beta[0] = from?.intercept ?? startAt(rows)
  const open: number[] = [0]
  for (let column = 0; column < width; column++) {
    if (allowed !== undefined && !allowed.has(column)) continue
    open.push(column + 1)
    beta[column + 1] = from?.coefficients[column] ?? 0
  }
  let value = countLikelihood(rows, beta, penalty)
  let converged = false
  for (let n = 0; n < newtonStepsMax && !converged; n++) {
    const model = toModel(rows, beta, { penalty, open })
    const step = findStep(model, { open, beta, isSigned })
    const taken = search(rows, { beta, step, open, penalty, value, isSigned })
    converged = taken.longest < stepMin
    value = taken.value
  }
  return {
    intercept: beta[0]!,
    coefficients: beta.slice(1),
    logLikelihood: value,
    converged,
  }
}

function startAt(rows: readonly CountedRow[]): number {
  let hits = 0
  let misses = 0
  for (const row of rows) {
    hits += row.hits
    misses += row.misses
  }
  return Math.log((hits + 0.5) / (misses + 0.5))
}

function sumOf(columns: readonly number[], beta: Float64Array): number {
  let sum = beta[0]!
  for (const column of columns) sum += beta[column + 1]!
  return sum
}

/** The penalised log likelihood of an intercept, which is first, and coefficients. */
export function countLikelihood(
  rows: readonly CountedRow[],
  beta: Float64Array,
  penalty: number,
): number {
  let total = 0
  for (const { columns, hits, misses } of rows) {
    const sum = sumOf(columns, beta)
    total += hits * sum - (hits + misses) * toSoft(sum)
  }
  for (let at = 1; at < beta.length; at++) total -= (penalty / 2) * beta[at]! ** 2
  return total
}

/** Gradient and Hessian of minus the likelihood. */
type Model = { gradient: Float64Array; hessian: Float64Array; size: number }

function toModel(
  rows: readonly CountedRow[],
  beta: Float64Array,
  { penalty, open }: { penalty: number; open: readonly number[] },
): Model {
  const size = open.length
  const placeOf = new Int32Array(beta.length).fill(-1)
  open.forEach((at, place) => {
    placeOf[at] = place
  })
  const gradient = new Float64Array(size)
  const hessian = new Float64Array(size * size)
  for (const { columns, hits, misses } of rows) {
    const count = hits + misses
    if (count === 0) continue
    const share = toShare(sumOf(columns, beta))
    const slope = count * share - hits
    const weight = count * share * (1 - share)
    const places = [0]
    for (const column of columns) {
      const place = placeOf[column + 1]!
      if (place >= 0) places.push(place)
    }
    for (const a of places) {
      gradient[a]! += slope
      for (const b of places) hessian[a * size + b]! += weight
    }
  }
  for (let place = 1; place < size; place++) {
    gradient[place]! += penalty * beta[open[place]!]!
    hessian[place * size + place]! += penalty
  }
  return { gradient, hessian, size }
}

/** The step that minimises the model while every coefficient stays at least 0. */
function findStep(
  { gradient, hessian, size }: Model,
  { open, beta, isSigned }: { open: readonly number[]; beta: Float64Array; isSigned: boolean },
): Float64Array {
  const step = new Float64Array(size)
  // The gradient of the model where the step now ends.
  const slope = Float64Array.from(gradient)
  for (let sweep = 0; sweep < sweepsMax; sweep++) {
    let longest = 0
    for (let place = 0; place < size; place++) {
      const curve = hessian[place * size + place]!
      if (curve < 1e-300) continue
      const lowest = isSigned || place === 0 ? Number.NEGATIVE_INFINITY : -beta[open[place]!]!
      const wanted = Math.max(lowest, step[place]! - slope[place]! / curve)
      const change = wanted - step[place]!
      if (change === 0) continue
      step[place] = wanted
      const row = place * size
      for (let other = 0; other < size; other++) slope[other]! += change * hessian[row + other]!
      longest = Math.max(longest, Math.abs(change))
    }
    if (longest < stepMin / 10) break
  }
  return step
}

/** Takes the step, or the longest half of a half of it that does not make the fit worse. */
function search(
  rows: readonly CountedRow[],
  state: {
    beta: Float64Array
    step: Float64Array
    open: readonly number[]
    penalty: number
    value: number
    isSigned: boolean
  },
): { value: number; longest: number } {
  const { beta, step, open, penalty, value, isSigned } = state
  const before = Float64Array.from(beta)
  let share = 1
  for (let n = 0; n < halvingsMax; n++, share /= 2) {
    let longest = 0
    open.forEach((at, place) => {
      const moved = before[at]! + share * step[place]!
      beta[at] = isSigned || at === 0 ? moved : Math.max(0, moved)
      longest = Math.max(longest, Math.abs(share * step[place]!))
    })
    const now = countLikelihood(rows, beta, penalty)
    // At the solution a step changes less than the sum can show.
    if (now >= value - 1e-12 * Math.abs(value)) return { value: now, longest }
  }
  beta.set(before)
  return { value, longest: 0 }
}

/**
 * Standard errors of the coefficients that are above 0, from the curvature at the solution. Those
 * at 0 have none: NaN.
 */
export function toStandardErrors(
  rows: readonly CountedRow[],
  fit: Pick<LogisticFit, 'intercept' | 'coefficients'>,
  penalty: number,
): Float64Array {
  const open = [
    0,
    ...fit.coefficients
      .keys()
      .filter((at) => fit.coefficients[at]! > 0)
      .map((at) => at + 1),
  ]
  const covariance = toCovariance(rows, fit, { penalty, open })
  const errors = new Float64Array(fit.coefficients.length).fill(Number.NaN)
  open.forEach((at, place) => {
    if (at > 0) errors[at - 1] = Math.sqrt(covariance[place * open.length + place]!)
  })
  return errors
}

/**
 * The covariance of the intercept and of coefficients, by the curvature at the solution.
 * @param open the places of the covariance: 0 is the intercept, `column + 1` a column
 */
export function toCovariance(
  rows: readonly CountedRow[],
  fit: Pick<LogisticFit, 'intercept' | 'coefficients'>,
  { penalty, open }: { penalty: number; open: readonly number[] },
): Float64Array {
  const beta = Float64Array.from([fit.intercept, ...fit.coefficients])
  const { hessian, size } = toModel(rows, beta, { penalty, open })
  return invert(hessian, size)
}

/** The inverse of a positive definite matrix, by Cholesky's factor. */
function invert(matrix: Float64Array, size: number): Float64Array {
  const lower = Float64Array.from(matrix)
  for (let row = 0; row < size; row++) {
    for (let column = 0; column <= row; column++) {
      let sum = lower[row * size + column]!
      for (let k = 0; k < column; k++) sum -= lower[row * size + k]! * lower[column * size + k]!
      lower[row * size + column] =
        row === column ? Math.sqrt(Math.max(sum, 1e-300)) : sum / lower[column * size + column]!
    }
  }
  const inverse = new Float64Array(size * size)
  const solved = new Float64Array(size)
  for (let unit = 0; unit < size; unit++) {
    // Forward, then backward substitution of a unit vector: a column of the inverse.
    for (let row = 0; row < size; row++) {
      let sum = row === unit ? 1 : 0
      for (let k = 0; k < row; k++) sum -= lower[row * size + k]! * solved[k]!
      solved[row] = sum / lower[row * size + row]!
    }
    for (let row = size - 1; row >= 0; row--) {
      let sum = solved[row]!
      for (let k = row + 1; k < size; k++) sum -= lower[k * size + row]! * solved[k]!
      solved[row] = sum / lower[row * size + row]!
      inverse[row * size + unit] = solved[row]!
    }
  }
  return inverse
}

/**
 * Fits the log odds of fraud as a line over scores, by Newton's method, with the least penalty that
 * keeps it finite.
 * @param hits fraud by score
 * @param misses legitimate sessions by score
 */
export function fitScore(
  hits: readonly number[],
  misses: readonly number[],
): { intercept: number; slope: number } {
  const penalty = 1e-6
  let intercept = 0
  let slope = 0
  for (let n = 0; n < newtonStepsMax; n++) {
    let [g0, g1, h00, h01, h11] = [0, penalty * slope, 1e-9, 0, penalty]
    hits.forEach((hit, score) => {
      const count = hit + misses[score]!
      const share = toShare(intercept + slope * score)
      const weight = count * share * (1 - share)
      g0 += count * share - hit
      g1 += (count * share - hit) * score
      h00 += weight
      h01 += weight * score
      h11 += weight * score * score
    })
    const determinant = h00 * h11 - h01 * h01
    const [d0, d1] = [(h11 * g0 - h01 * g1) / determinant, (h00 * g1 - h01 * g0) / determinant]
    // Far from the solution a whole step can overshoot: 2 log odds over all scores are enough.
    const shorten = Math.min(1, 2 / Math.max(Math.abs(d0), 100 * Math.abs(d1), 1e-300))
    intercept -= shorten * d0
    slope -= shorten * d1
    if (Math.abs(d0) + 100 * Math.abs(d1) < stepMin) break
  }
  return { intercept, slope }
}
