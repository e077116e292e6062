// Counting in windows, against the definition itself: a session counts at t when it was seen in
// (t - w, t].
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createWindowCount, toScreen } from '#shared/core/activity.ts'
import type { VelocityRule } from '#shared/core/policy.ts'

describe('a window', () => {
  it('takes in its end and leaves out its beginning', () => {
    const count = createWindowCount([[1_000]], 60)
    expect(count(999)).toBe(0)
    expect(count(1_000)).toBe(1)
    expect(count(60_999)).toBe(1)
    expect(count(61_000)).toBe(0)
  })

  it('counts a session once however often it was seen', () => {
    const count = createWindowCount([[5, 1, 5, 3], [], [4]], 60)
    expect([0, 1, 3, 4, 5, 100].map(count)).toEqual([0, 1, 1, 2, 2, 2])
  })

  it('counts as the definition does, for any times in any order', () => {
    const times = fc.array(fc.array(fc.integer({ min: 0, max: 400_000 }), { maxLength: 6 }))
    fc.assert(
      fc.property(times, fc.integer({ min: 60, max: 300 }), fc.nat(500_000), (seen, window, at) => {
        const from = at - window * 1000
        const expected = seen.filter((one) => one.some((time) => time > from && time <= at)).length
        expect(createWindowCount(seen, window)(at)).toBe(expected)
      }),
      { numRuns: 500 },
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

  it('looks for the least threshold that any policy has, and for the widest window', () => {
    const screen = toScreen([
      [rule({ threshold: 20 }), rule({ windowSeconds: 3600, threshold: 60 })],
      [rule({ threshold: 5 }), rule({ metric: 'users_per_device', windowSeconds: 86_400 })],
    ])
    expect(screen.rules).toContainEqual({
      metric: 'sessions_per_device',
      windowSeconds: 300,
      threshold: 5,
    })
    expect(screen.rules).toHaveLength(3)
    expect(screen.widestSeconds).toEqual({ sessions_per_device: 3600, users_per_device: 86_400 })
  })

  it('does not look for what weighs nothing', () => {
    expect(toScreen([[rule({ weight: 0 })]]).rules).toEqual([])
  })
})
