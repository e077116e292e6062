// Counting in windows, against the definition itself: a session counts for an event at t when it
// was seen at the event's place in the stream or before it, and later than t - w.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { VelocityRule } from '#shared/core/policies/policy.ts'
import {
  countInWindow,
  type Moment,
  type Sightings,
  toScreen,
} from '#shared/core/velocity/windowed-counts.ts'

const at = (streamOffset: number, atMs: number): Moment => ({ streamOffset, atMs })
const seen = (...moments: Moment[]): Sightings => moments

describe('a window', () => {
  it('takes in the event itself and leaves out what is as old as it is wide', () => {
    const sightings = [seen(at(1, 1_000))]
    const asked = [at(1, 1_000), at(2, 60_999), at(3, 61_000)]
    expect(countInWindow(sightings, 60, asked)).toEqual([1, 1, 0])
  })

  it('leaves out what comes later in the stream, whatever its time', () => {
    const sightings = [seen(at(1, 5_000)), seen(at(2, 4_000)), seen(at(3, 3_000))]
    expect(countInWindow(sightings, 60, [at(2, 4_000), at(1, 5_000)])).toEqual([2, 1])
  })

  it('counts a session once however often it was seen', () => {
    const often = seen(at(1, 500), at(4, 900), at(4, 900), at(6, 700))
    expect(countInWindow([often, seen()], 60, [at(3, 600), at(6, 900)])).toEqual([1, 1])
  })

  it('counts as the definition does, for any times in any order', () => {
    const moment = fc.record({ streamOffset: fc.nat(30), atMs: fc.nat(400_000) })
    const sightings = fc.array(moment, { maxLength: 7 })
    fc.assert(
      fc.property(
        fc.array(sightings, { maxLength: 12 }),
        fc.integer({ min: 60, max: 300 }),
        fc.array(moment, { maxLength: 10 }),
        (subjects, windowSeconds, asked) => {
          const expected = asked.map(({ streamOffset, atMs }) => {
            const from = atMs - windowSeconds * 1000
            return subjects.filter((moments) =>
              moments.some((one) => one.streamOffset <= streamOffset && one.atMs > from),
            ).length
          })
          expect(countInWindow(subjects, windowSeconds, asked)).toEqual(expected)
        },
      ),
      { numRuns: 1_000 },
    )
  })
})

describe('a screen', () => {
  const rule = (some: Partial<VelocityRule>): VelocityRule => ({
    metric: 'sessions_per_device',
    windowSeconds: 300,
    threshold: 20,
    weight: 30,
    ...some,
  })

  it('looks for every limit that another one does not cover', () => {
    const screen = toScreen([
      [rule({ threshold: 20 }), rule({ windowSeconds: 3600, threshold: 60 })],
      [rule({ threshold: 5 }), rule({ metric: 'users_per_device', windowSeconds: 86_400 })],
    ])
    expect([...screen]).toEqual([
      [
        'sessions_per_device',
        [
          { threshold: 60, windowSeconds: 3600 },
          { threshold: 5, windowSeconds: 300 },
        ],
      ],
      ['users_per_device', [{ threshold: 20, windowSeconds: 86_400 }]],
    ])
  })

  it('has few limits whatever the policies, and misses no rule of any', () => {
    const limit = fc.record({
      windowSeconds: fc.integer({ min: 1, max: 12 }),
      threshold: fc.integer({ min: 1, max: 12 }),
    })
    fc.assert(
      fc.property(fc.array(fc.array(limit, { maxLength: 4 }), { maxLength: 5 }), (policies) => {
        const screen = toScreen(policies.map((limits) => limits.map(rule)))
        const limits = screen.get('sessions_per_device') ?? []
        expect(limits.length).toBeLessThanOrEqual(4)
        for (const { threshold, windowSeconds } of policies.flat()) {
          const isLookedFor = limits.some(
            (one) => one.threshold <= threshold && one.windowSeconds >= windowSeconds,
          )
          expect(isLookedFor).toBe(true)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('does not look for what weighs nothing', () => {
    expect(toScreen([[rule({ weight: 0 })]]).size).toBe(0)
  })
})
