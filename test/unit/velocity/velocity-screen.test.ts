// The velocity screen: few limits, and none of the policies' rules is missed.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toVelocityScreen } from '#shared/core/velocity/velocity-screen.ts'
import { velocityRule } from '../../support/velocity/velocity-rule.ts'

describe('a screen', () => {
  it('has every limit that another one does not cover', () => {
    const screen = toVelocityScreen([
      [velocityRule({ threshold: 20 }), velocityRule({ windowSeconds: 3600, threshold: 60 })],
      [
        velocityRule({ threshold: 5 }),
        velocityRule({ metric: 'users_per_device', windowSeconds: 86_400 }),
      ],
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

  it('has at most four limits and misses no rule of any policy', () => {
    const limit = fc.record({
      windowSeconds: fc.integer({ min: 1, max: 12 }),
      threshold: fc.integer({ min: 1, max: 12 }),
    })
    fc.assert(
      fc.property(fc.array(fc.array(limit, { maxLength: 4 }), { maxLength: 5 }), (policies) => {
        const screen = toVelocityScreen(policies.map((limits) => limits.map(velocityRule)))
        const limits = screen.get('sessions_per_device') ?? []
        expect(limits.length).toBeLessThanOrEqual(4)
        for (const { threshold, windowSeconds } of policies.flat()) {
          const isCovered = limits.some(
            (one) => one.threshold <= threshold && one.windowSeconds >= windowSeconds,
          )
          expect(isCovered).toBe(true)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('leaves out rules of weight 0', () => {
    expect(toVelocityScreen([[velocityRule({ weight: 0 })]]).size).toBe(0)
  })
})
