import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type CountedRow,
  fitLogistic,
  toLogOdds,
  toShare,
  toStandardErrors,
} from '#shared/core/outcomes/suggest/fit-logistic.ts'

describe('one yes or no column without a penalty', () => {
  const count = fc.integer({ min: 1, max: 100_000 })
  test('has the log odds of the closed form, and its standard error', () => {
    fc.assert(
      fc.property(count, count, count, count, (a, b, c, d) => {
        const rows: CountedRow[] = [
          { columns: [0], hits: a, misses: b },
          { columns: [], hits: c, misses: d },
        ]
        const fit = fitLogistic(rows, { width: 1, penalty: 0 })
        const ratio = Math.log((a * d) / (b * c))
        expect(Math.abs(fit.coefficients[0]! - Math.max(0, ratio))).toBeLessThan(1e-6)
        const base = ratio > 0 ? Math.log(c / d) : Math.log((a + c) / (b + d))
        expect(Math.abs(fit.intercept - base)).toBeLessThan(1e-6)
        if (ratio < 1e-3) return
        const [error] = toStandardErrors(rows, fit, 0)
        expect(error).toBeCloseTo(Math.sqrt(1 / a + 1 / b + 1 / c + 1 / d), 6)
      }),
    )
  })
})

const rowsOf = fc.array(
  fc.record({
    columns: fc.uniqueArray(fc.integer({ min: 0, max: 5 }), { maxLength: 6 }),
    hits: fc.integer({ min: 0, max: 400 }),
    misses: fc.integer({ min: 1, max: 400 }),
  }),
  { minLength: 2, maxLength: 30 },
)

describe('several columns with a penalty', () => {
  test('no coefficient is below 0, and none could be moved to a better fit', () => {
    fc.assert(
      fc.property(rowsOf, fc.constantFrom(0.5, 1, 10), (rows, penalty) => {
        const fit = fitLogistic(rows, { width: 6, penalty })
        expect(fit.converged || rows.every(({ hits }) => hits === 0)).toBe(true)
        const { coefficients, intercept } = fit
        const total = rows.reduce((sum, { hits, misses }) => sum + hits + misses, 0)
        for (let column = 0; column < 6; column++) {
          // What the penalised likelihood gains for each unit of this coefficient.
          let slope = -penalty * coefficients[column]!
          for (const { columns, hits, misses } of rows) {
            if (!columns.includes(column)) continue
            const sum = columns.reduce((at, one) => at + coefficients[one]!, intercept)
            slope += hits - (hits + misses) * toShare(sum)
          }
          expect(coefficients[column]).toBeGreaterThanOrEqual(0)
          if (coefficients[column]! > 0) expect(Math.abs(slope)).toBeLessThan(1e-6 * total)
          else expect(slope).toBeLessThan(1e-6 * total)
        }
      }),
    )
  })

  test('a column that is not allowed stays at 0', () => {
    const rows = [
      { columns: [0, 1], hits: 50, misses: 10 },
      { columns: [1], hits: 20, misses: 40 },
      { columns: [], hits: 5, misses: 90 },
    ]
    const fit = fitLogistic(rows, { width: 2, penalty: 0, allowed: new Set([1]) })
    expect(fit.coefficients[0]).toBe(0)
    expect(fit.coefficients[1]).toBeCloseTo(toLogOdds(70 / 120) - toLogOdds(5 / 95), 6)
  })
})
