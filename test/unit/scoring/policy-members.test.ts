// The members of a policy that an older document lacks: floors that need several signals, signals that
// the tenant declares, trusted installers and required signals.
import { describe, expect, it } from 'vitest'
import { type Policy, policySchema } from '#shared/core/policies/policy.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import { explainScore } from '#shared/core/scoring/score-explanation.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { context, signalsOf } from '../../support/scoring/any-policy.ts'

const changed = (change: Partial<Policy>): Policy =>
  policySchema.parse({ ...balancedPolicy, ...change })

function scoreBy(policy: Policy, signals: Partial<Signals>) {
  const sent = signalsOf(signals)
  const { score, action, reasons } = compilePolicy(policy)(sent, context)
  const steps = explainScore(policy, sent, context)
  expect({ score, action, reasons }).toEqual({
    score: steps.score,
    action: steps.action,
    reasons: steps.reasons,
  })
  const codes = Object.fromEntries(reasons.map(({ code, weight }) => [code, weight]))
  return { score, action, codes, reasons, steps }
}

describe('a floor that needs all of its signals', () => {
  const policy = changed({
    floors: [
      { score: 50, signals: ['root.custom_rom', 'tamper.time_spoofed'], need: 'all' },
      {
        score: 90,
        signals: ['network.vpn_active', 'ecosystem.active_call'],
        need: 'all',
      },
    ],
  })
  const custom = { root: { custom_rom: true } }
  const spoofed = { tamper: { time_spoofed: true } }

  it('acts only when every one of them scores', () => {
    expect(scoreBy(policy, custom).score).toBe(8)
    expect(scoreBy(policy, spoofed).score).toBe(8)
    const both = scoreBy(policy, { ...custom, ...spoofed })
    expect(both).toMatchObject({ score: 50, codes: { SYSTEM_MODIFIED: 42, TIME_SPOOFED: 8 } })
    const floor = { signal: 'root.custom_rom', with: ['tamper.time_spoofed'], score: 50 }
    expect(both.steps.floor).toEqual(floor)
    expect(both.reasons[0]!.evidence.floor).toEqual(floor)
  })

  it('of soft categories alone stays below BLOCK', () => {
    const soft = scoreBy(policy, {
      network: { vpn_active: true },
      ecosystem: { active_call: true },
    })
    expect(soft).toMatchObject({ score: 74, action: 'REVIEW' })
  })
})

describe('a declared signal', () => {
  const categories = structuredClone(balancedPolicy.categories)
  Object.assign(categories.ecosystem.signals, {
    my_sdk_flag: 25,
    myCount: { atLeast: 3, weight: 12 },
    plan: { values: { gift: 20 } },
    tags: { values: { vpn_app: 15, '(empty)': 5 } },
    not_declared: 30,
  })
  const policy = changed({
    categories,
    signals: {
      'ecosystem.my_sdk_flag': { type: 'boolean' },
      'ecosystem.myCount': { type: 'number' },
      'ecosystem.plan': { type: 'string' },
      'ecosystem.tags': { type: 'strings' },
      // The catalog has it, whatever a policy says.
      'root.su_binary': { type: 'string' },
    },
  })
  const score = (ecosystem: Record<string, unknown>) => scoreBy(policy, { ecosystem })

  it.each([
    [{ my_sdk_flag: true }, 25],
    [{ myCount: 3 }, 12],
    [{ plan: 'gift' }, 20],
    [{ tags: ['a', 'vpn_app'] }, 15],
    [{ tags: [] }, 5],
  ])('scores with the flag TENANT_SIGNAL: %j', (ecosystem, points) => {
    expect(score(ecosystem)).toMatchObject({ score: points, codes: { TENANT_SIGNAL: points } })
  })

  it.each([
    [{ my_sdk_flag: 'true' }],
    [{ my_sdk_flag: null }],
    [{ myCount: '3' }],
    [{ myCount: 1e30 }],
    [{ plan: ['gift'] }],
    [{ tags: 'vpn_app' }],
    [{ not_declared: true }],
  ])('of another type, or that is not declared, scores nothing: %j', (ecosystem) => {
    expect(score(ecosystem)).toMatchObject({ score: 0, reasons: [] })
  })

  it('is known to the explanation, and the catalog comes before the policy', () => {
    const { steps } = score({ my_sdk_flag: false, plan: 'free', not_declared: true })
    expect(steps.signals.map(({ outcome }) => outcome)).toEqual(['clean', 'clean', 'unknown'])
    expect(scoreBy(policy, { root: { su_binary: true } }).codes).toEqual({ ROOTED: 40 })
  })
})

describe('a trusted installer', () => {
  const sideloaded = { untrusted_install_source: true, pi_app_verdict: 'UNRECOGNIZED_VERSION' }
  const trusting = (silences?: string[]) =>
    changed({
      trustedInstallers: { packages: ['com.acme.store'], ...(silences ? { silences } : {}) },
    })
  const from = (installer: unknown) => ({
    tamper: { ...sideloaded, installer_package: installer },
  })

  it('silences where the app came from, and nothing else unless the policy names it', () => {
    const unknown = scoreBy(trusting(), from('com.other'))
    expect(unknown.codes).toEqual({ ATTESTATION_FAILED: 60, UNTRUSTED_INSTALL: 20 })
    expect(scoreBy(trusting(), from('com.acme.store')).codes).toEqual({ ATTESTATION_FAILED: 60 })
    const both = ['tamper.untrusted_install_source', 'tamper.pi_app_verdict']
    expect(scoreBy(trusting(both), from('com.acme.store')).score).toBe(0)
  })

  it.each([[null], [['com.acme.store']], ['COM.ACME.STORE'], [7]])('is not %j', (installer) => {
    expect(scoreBy(trusting(), from(installer)).codes.UNTRUSTED_INSTALL).toBe(20)
  })

  it('is named by the explanation', () => {
    const { steps } = scoreBy(trusting(), from('com.acme.store'))
    const step = steps.signals.find(({ signal }) => signal === 'tamper.untrusted_install_source')
    expect(step).toMatchObject({
      outcome: 'suppressed',
      points: 0,
      suppressed_because: 'The policy trusts the installer com.acme.store.',
    })
  })
})

describe('required signals', () => {
  const policy = changed({
    requiredSignals: { signals: ['root.*', 'tamper.pi_device_verdict'], weight: 45 },
  })
  const verdict = { pi_device_verdict: ['MEETS_DEVICE_INTEGRITY'] }

  it('raise SIGNALS_MISSING at once when one is left out or null, and name it', () => {
    const nothing = scoreBy(policy, {})
    expect(nothing).toMatchObject({ score: 45, action: 'REVIEW' })
    expect(nothing.reasons).toEqual([
      {
        code: 'SIGNALS_MISSING',
        weight: 45,
        evidence: {
          metric: 'required_signals',
          count: 2,
          threshold: 0,
          window: 'event',
          missing: ['root.*', 'tamper.pi_device_verdict'],
        },
      },
    ])
    expect(nothing.steps).toMatchObject({ sum: 0, total: 45, missing: { points: 45 } })
    const nulls = { root: { su_binary: null }, tamper: { pi_device_verdict: null } }
    expect(scoreBy(policy, nulls).score).toBe(45)
  })

  it('are satisfied by any signal of a category, known or not, and by an empty list', () => {
    expect(scoreBy(policy, { root: { su_binary: false }, tamper: verdict }).score).toBe(0)
    expect(scoreBy(policy, { root: { brand_new: 1 }, tamper: verdict }).score).toBe(0)
    const empty = { root: { su_binary: false }, tamper: { pi_device_verdict: [] } }
    expect(scoreBy(policy, empty).codes).toEqual({ ATTESTATION_FAILED: 35 })
  })

  it('add to what is found, up to 100, and floors still lift', () => {
    const frida = scoreBy(policy, { debugger: { frida_detected: true } })
    expect(frida).toMatchObject({
      score: 100,
      codes: { HOOKING_DETECTED: 75, SIGNALS_MISSING: 25 },
    })
    const hidden = changed({ ...policy, requiredSignals: { signals: ['tamper.*'], weight: 2 } })
    expect(scoreBy(hidden, { debugger: { native_hooks: true } })).toMatchObject({
      score: 80,
      codes: { HOOKING_DETECTED: 78, SIGNALS_MISSING: 2 },
    })
  })
})
