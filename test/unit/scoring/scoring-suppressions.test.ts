// Suppressions: the events they apply to, exact in time and in version.
import { describe, expect, it } from 'vitest'
import type { Suppression } from '#shared/core/policies/policy.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { ScoringContext } from '#shared/core/scoring/suppressions.ts'
import { context, signalsOf } from '../../support/scoring/any-policy.ts'

const frida = signalsOf({ debugger: { frida_detected: true } })

/** Whether a suppression of Frida applies to an event. */
function acts(suppression: Partial<Suppression>, event: Partial<ScoringContext>): boolean {
  const whole = { signals: ['debugger.frida_detected'], expiresAt: null, reason: 'test' }
  const policy = { ...balancedPolicy, suppressions: [{ ...whole, ...suppression }] }
  const { score } = compilePolicy(policy)(frida, { ...context, ...event })
  expect([0, 80]).toContain(score)
  return score === 0
}

describe('a suppression', () => {
  it('applies to every event when it has no versions, platforms or end', () => {
    expect(acts({}, { sdkVersion: '', platform: '' })).toBe(true)
  })

  it.each([
    ['4.2.0', '4.2.0', true],
    ['4.2.0', '4.2.0-rc1', false],
    ['4.2.0', '4.2.00', false],
    ['4.2.*', '4.2.0', true],
    ['4.2.*', '4.2.10-rc1+5', true],
    ['4.2.*', '4.2', false],
    ['4.2.*', '4.20.0', false],
    ['4.2.*', '14.2.0', false],
    ['4.*', '4.2.0', true],
    ['4.*', '40.1', false],
    ['4.2.0-RC1', '4.2.0-rc1', false],
  ])('of SDK version %s and an event of %s: %s', (named, sent, expected) => {
    expect(acts({ sdkVersions: ['1.0.0', named] }, { sdkVersion: sent })).toBe(expected)
  })

  it.each([
    ['android', 'Android', true],
    ['iOS', 'ios', true],
    ['ios', 'android', false],
    ['android', 'android-tv', false],
  ])('of platform %s and an event of %s: %s', (named, sent, expected) => {
    expect(acts({ platforms: [named] }, { platform: sent })).toBe(expected)
  })

  it('applies only where version and platform both match', () => {
    const both = { sdkVersions: ['4.2.*'], platforms: ['ios'] }
    expect(acts(both, { sdkVersion: '4.2.1', platform: 'ios' })).toBe(true)
    expect(acts(both, { sdkVersion: '4.2.1', platform: 'android' })).toBe(false)
    expect(acts(both, { sdkVersion: '4.3.0', platform: 'ios' })).toBe(false)
  })

  it('ends at its instant, in any offset', () => {
    const endMs = Date.parse('2026-06-01T00:00:00Z')
    for (const expiresAt of ['2026-06-01T00:00:00Z', '2026-06-01T02:00:00+02:00']) {
      expect(acts({ expiresAt }, { receivedAtMs: endMs - 1 })).toBe(true)
      expect(acts({ expiresAt }, { receivedAtMs: endMs })).toBe(false)
    }
  })

  it('suppresses a whole category and no other', () => {
    const policy = {
      ...balancedPolicy,
      suppressions: [{ signals: ['root.*'], expiresAt: null, reason: 'test' }],
    }
    const signals = signalsOf({
      root: { su_binary: true, verified_boot_state: 'FAILED', root_hiding: true },
      emulator: { is_emulator: true },
    })
    const { score, reasons } = compilePolicy(policy)(signals, context)
    expect(score).toBe(45)
    expect(reasons.map((reason) => reason.code)).toEqual(['EMULATOR'])
  })
})
