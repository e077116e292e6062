// Windowed counts against the definition: a session counts for an event at t when it was seen at
// the event's stream offset or before, and later than t - w.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { countInWindow } from '#shared/core/velocity/windowed-counts.ts'

describe('a window', () => {
  it('equals the definition, for any times in any order', () => {
    const seconds = fc.nat(400).map((n) => n * 1_000)
    const moment = fc.record({ streamOffset: fc.nat(30), atMs: seconds })
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
