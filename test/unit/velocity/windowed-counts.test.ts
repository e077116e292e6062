// Windowed counts against the definition: a session counts for an event at t when it was seen at
// the event's stream offset or before, and later than t - w.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { countInWindow, type Moment } from '#shared/core/velocity/windowed-counts.ts'

const at = (streamOffset: number, atMs: number): Moment => ({ streamOffset, atMs })
const seen = (...moments: Moment[]): Moment[] => moments

describe('a window', () => {
  it('includes the event itself and excludes what is exactly one window older', () => {
    const sightings = [seen(at(1, 1_000))]
    const queries = [at(1, 1_000), at(2, 60_999), at(3, 61_000)]
    expect(countInWindow(sightings, 60, queries)).toEqual([1, 1, 0])
  })

  it('excludes later ones in the stream, at any time', () => {
    const sightings = [seen(at(1, 5_000)), seen(at(2, 4_000)), seen(at(3, 3_000))]
    expect(countInWindow(sightings, 60, [at(2, 4_000), at(1, 5_000)])).toEqual([2, 1])
  })

  it('counts a session once, however often it was seen', () => {
    const often = seen(at(1, 500), at(4, 900), at(4, 900), at(6, 700))
    expect(countInWindow([often, seen()], 60, [at(3, 600), at(6, 900)])).toEqual([1, 1])
  })

  it('equals the definition, for any times in any order', () => {
    const moment = fc.record({ streamOffset: fc.nat(30), atMs: fc.nat(400_000) })
    const sightings = fc.array(moment, { maxLength: 7 })
    fc.assert(
      fc.property(
        fc.array(sightings, { maxLength: 12 }),
        fc.integer({ min: 60, max: 300 }),
        fc.array(moment, { maxLength: 10 }),
        (subjects, windowSeconds, queries) => {
          const expected = queries.map(({ streamOffset, atMs }) => {
            const from = atMs - windowSeconds * 1000
            return subjects.filter((moments) =>
              moments.some((one) => one.streamOffset <= streamOffset && one.atMs > from),
            ).length
          })
          expect(countInWindow(subjects, windowSeconds, queries)).toEqual(expected)
        },
      ),
      { numRuns: 1_000 },
    )
  })
})
