/** What rounds of a benchmark say together does not lean to either side. */
import { describe, expect, it } from 'vitest'
import { toRatios, toSpread } from '../../bench/spread.ts'

describe('several rounds together', () => {
  it('have the middle one as their median, of an even number the mean of the middle two', () => {
    expect(toSpread([9, 1, 4])).toEqual({ median: 4, min: 1, max: 9, rounds: 3 })
    expect(toSpread([100, 40])).toEqual({ median: 70, min: 40, max: 100, rounds: 2 })
    expect(toSpread([7, 1, 3, 5]).median).toBe(4)
    expect(() => toSpread([])).toThrow('at least one round')
  })

  it('are compared with the floors of their own round', () => {
    expect(toRatios([10, 30], [20, 30])).toEqual({ median: 0.75, min: 0.5, max: 1, rounds: 2 })
  })
})
