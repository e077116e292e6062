import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toFeatures, withPoints } from '#shared/core/outcomes/suggest/features.ts'
import type { OutcomeEvent } from '#shared/core/outcomes/suggest/outcome-table.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import { checkPolicy } from '#shared/core/policies/policy-check.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { findVelocity } from '#shared/core/velocity/correlation.ts'

const withoutSignals: OutcomeEvent = {
  signals: { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} },
  server: {},
  context: { sdkVersion: '', platform: '', receivedAtMs: 0 },
  counts: new Map(),
  others: [],
}

const columnsOf = (event: Partial<OutcomeEvent>, policy: Policy = balancedPolicy): string[] => {
  const { features, columnsOf: find } = toFeatures(policy)
  return find({ ...withoutSignals, ...event })
    .map((column) => features[column]!.name)
    .sort()
}

describe('columns', () => {
  test('of a text are by the points of its value; what a policy silences has none', () => {
    const tamper = { pi_device_verdict: ['MEETS_BASIC_INTEGRITY'], pi_licensing: 'UNLICENSED' }
    const signals = { ...withoutSignals.signals, tamper }
    expect(columnsOf({ signals })).toEqual(['tamper.pi_device_verdict (15)', 'tamper.pi_licensing'])
    const trusted = { ...tamper, installer_package: 'com.sec.android.app.samsungapps' }
    expect(columnsOf({ signals: { ...signals, tamper: trusted } })).toEqual([
      'tamper.pi_device_verdict (15)',
    ])
  })

  test('of velocity are every step that the heaviest rule of its flag reaches', () => {
    const counts = new Map([
      ['users_per_device:86400', 4],
      ['users_per_device:2592000', 20],
    ])
    expect(columnsOf({ counts })).toEqual([
      'MANY_USERS_PER_DEVICE from 20',
      'MANY_USERS_PER_DEVICE from 30',
      'MANY_USERS_PER_DEVICE from 45',
    ])
  })

  test('are there for a signal that a policy does not name, not for one that has 0', () => {
    const { su_binary: _, ...signals } = balancedPolicy.categories.root.signals
    const root = { ...balancedPolicy.categories.root, signals: { ...signals, rooted: 0 } }
    const policy = { ...balancedPolicy, categories: { ...balancedPolicy.categories, root } }
    const shown = { ...withoutSignals.signals, root: { su_binary: true, rooted: true } }
    expect(columnsOf({ signals: shown }, policy)).toEqual(['root.su_binary'])
    const { features } = toFeatures(policy)
    const points = features.map(({ name, today }) => (name === 'root.su_binary' ? 33 : today))
    expect(withPoints(policy, features, points).categories.root.signals).toEqual({
      ...root.signals,
      su_binary: 33,
    })
  })
})

describe('points', () => {
  test.each(Object.entries(presets))('of today make the same policy: %s', (_, policy: Policy) => {
    const { features } = toFeatures(policy)
    const today = features.map((feature) => feature.today)
    expect(withPoints(policy, features, today)).toEqual(policy)
  })

  test('of any size pass the check, and a higher count never weighs less', () => {
    const { features } = toFeatures(balancedPolicy)
    const any = fc.array(fc.integer({ min: 0, max: 100 }), {
      minLength: features.length,
      maxLength: features.length,
    })
    fc.assert(
      fc.property(any, (points) => {
        const policy = withPoints(balancedPolicy, features, points)
        expect(checkPolicy(policy)).toMatchObject({ ok: true })
        for (const { metric, windowSeconds } of policy.velocity) {
          const weightOf = (count: number) => {
            const counts = new Map([[`${metric}:${windowSeconds}`, count]])
            return findVelocity(policy.velocity, counts)[0]?.weight ?? 0
          }
          const weights = [1, 2, 5, 10, 20, 30, 60, 120, 240].map(weightOf)
          expect(weights).toEqual([...weights].sort((a, b) => a - b))
        }
      }),
      { numRuns: 30 },
    )
  })
})
