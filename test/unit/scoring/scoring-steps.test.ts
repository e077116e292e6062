// The steps from signals to a score: groups, caps, strong evidence, halving, soft limits, floors,
// their evidence, and the explanation that lists them all.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Policy, policySchema } from '#shared/core/policies/policy.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { explainScore, scoreExplanationSchema } from '#shared/core/scoring/score-explanation.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { anyPolicy, anySignals, context, signalsOf } from '../../support/scoring/any-policy.ts'
import { anyWholePolicy } from '../../support/scoring/backtest-cases.ts'

function scoreBy(policy: Policy, signals: Partial<Signals>) {
  return compilePolicy(policy)(signalsOf(signals), context)
}

function evidenceOf(policy: Policy, signals: Partial<Signals>, code: string) {
  return scoreBy(policy, signals).reasons.find((reason) => reason.code === code)
}

/** The default policy with some parts changed. */
function changed(change: Partial<Policy>): Policy {
  return { ...balancedPolicy, ...change }
}

describe('strong evidence', () => {
  const light = changed({
    floors: [],
    categories: {
      ...balancedPolicy.categories,
      debugger: { cap: 85, signals: { xposed_detected: 10, native_hooks: 20, auto_clicker: 5 } },
    },
  })

  it('fills a category to its cap, and names the critical signals that caused it', () => {
    const found = { xposed_detected: true, native_hooks: true, auto_clicker: true }
    expect(scoreBy(light, { debugger: { ...found, native_hooks: false } }).score).toBe(15)
    expect(scoreBy(light, { debugger: found }).score).toBe(85)
    expect(evidenceOf(light, { debugger: found }, 'AUTOMATION_LIKELY')).toEqual({
      code: 'AUTOMATION_LIKELY',
      weight: 12,
      evidence: {
        signals: ['debugger.auto_clicker'],
        strong_evidence: ['debugger.native_hooks', 'debugger.xposed_detected'],
      },
    })
  })

  it('fills a category whose group allows no points', () => {
    const debug = light.categories.debugger
    const policy = {
      ...light,
      categories: {
        ...light.categories,
        debugger: {
          cap: debug.cap,
          signals: debug.signals,
          groups: [{ cap: 0, signals: ['xposed_detected', 'native_hooks'] }],
        },
      },
    }
    const { score, reasons } = scoreBy(policy, {
      debugger: { xposed_detected: true, native_hooks: true },
    })
    expect({ score, weights: reasons.map((one) => one.weight) }).toEqual({
      score: 85,
      weights: [85],
    })
  })

  it('does nothing in a policy without it', () => {
    const none = { ...light, strongEvidence: null }
    const found = { xposed_detected: true, native_hooks: true }
    expect(scoreBy(none, { debugger: found }).score).toBe(30)
  })
})

describe('halving', () => {
  it('applies several rules, each to its category', () => {
    const policy = changed({
      halving: [
        ...balancedPolicy.halving,
        { category: 'ecosystem', confirmedBy: ['emulator.is_emulator'] },
      ],
    })
    const signals = {
      root: { su_binary: true },
      emulator: { is_emulator: true },
      ecosystem: { location_spoofed: true },
    }
    expect(scoreBy(policy, signals).score).toBe(45 + 20 + 10)
  })

  it('reads two rules for one category as one', () => {
    const policy = changed({
      halving: [
        { category: 'root', confirmedBy: ['emulator.is_emulator'] },
        { category: 'root', confirmedBy: ['emulator.cloud_phone'] },
      ],
    })
    for (const emulator of [{ is_emulator: true }, { cloud_phone: true }]) {
      const signals = { root: { su_binary: true }, emulator }
      expect(evidenceOf(policy, signals, 'ROOTED')?.weight).toBe(20)
    }
  })

  it('restores points that a light confirmation would remove, without its evidence', () => {
    const policy = changed({
      halving: [{ category: 'root', confirmedBy: ['emulator.x86_abi'] }],
    })
    const signals = { root: { su_binary: true }, emulator: { x86_abi: true } }
    // 40 without the confirmation: 20 and 5 with it must not be less.
    expect(scoreBy(policy, signals).score).toBe(40)
    expect(evidenceOf(policy, signals, 'ROOTED')).toMatchObject({
      weight: 35,
      evidence: { halved_by: ['emulator.x86_abi'] },
    })
    const capped = changed({
      halving: [{ category: 'root', confirmedBy: ['emulator.is_emulator'] }],
      categories: {
        ...balancedPolicy.categories,
        emulator: { cap: 45, signals: { is_emulator: 45, cloud_phone: 45 } },
      },
    })
    const both = { root: { su_binary: true }, emulator: { is_emulator: true, cloud_phone: true } }
    expect(scoreBy(capped, both).score).toBe(85)
    expect(evidenceOf(capped, both, 'ROOTED')?.evidence).toEqual({ signals: ['root.su_binary'] })
  })
})

describe('documents with one halving rule, an older form', () => {
  const { groups: _, ...root } = balancedPolicy.categories.root
  const { suppressions, scoreMismatch, signalsMissing, ...rest } = balancedPolicy
  const document = (halving: unknown) =>
    policySchema.parse(
      JSON.parse(
        JSON.stringify({ ...rest, categories: { ...rest.categories, root }, halving }),
      ) as unknown,
    )
  const signals = { root: { su_binary: true, test_keys: true }, emulator: { is_emulator: true } }

  it('are readable and keep their score, with one rule or none', () => {
    const one = document({ category: 'root', confirmedBy: ['emulator.is_emulator'] })
    expect(one).toMatchObject({ suppressions: [], scoreMismatch: null, signalsMissing: null })
    expect(scoreBy(one, signals).score).toBe(45 + 24)
    expect(scoreBy(document(null), signals).score).toBe(45 + 48)
  })

  it('count posture signals of root one by one', () => {
    const unlocked = { root: { bootloader_unlocked: true, verified_boot_state: 'UNVERIFIED' } }
    expect(scoreBy(document(null), unlocked).score).toBe(40)
  })
})

describe('the explanation', () => {
  const named = fc.constantFrom<Policy>(...Object.values(presets))
  const anyOfThem = fc.oneof(named, anyPolicy, anyWholePolicy)

  it('equals the scorer’s answer, and every step adds up, under any policy', () => {
    fc.assert(
      fc.property(anyOfThem, anySignals, (policy, signals) => {
        const scored = compilePolicy(policy)(signals, context)
        const explanation = explainScore(policy, signals, context)
        const { score, action, reasons } = explanation
        expect({ score, action, reasons }).toEqual(scored)
        expect(scoreExplanationSchema.parse(explanation)).toEqual(explanation)
        let sum = 0
        for (const one of explanation.categories) {
          const own = explanation.signals.filter((signal) =>
            signal.signal.startsWith(`${one.category}.`),
          )
          expect(own.reduce((points, signal) => points + signal.points, 0)).toBe(one.sum)
          expect(one.points).toBeLessThanOrEqual(one.halved)
          expect(one.halved).toBeLessThanOrEqual(one.capped)
          expect(one.capped).toBeLessThanOrEqual(one.cap)
          sum += one.points
        }
        expect(explanation.sum).toBe(sum)
        expect(explanation.total).toBe(Math.min(100, sum) + (explanation.missing?.points ?? 0))
        expect(score).toBe(explanation.floor?.score ?? explanation.total)
      }),
      { numRuns: 250 },
    )
  })

  it('lists every sent signal with its value and its outcome', () => {
    const policy = changed({
      suppressions: [
        {
          signals: ['debugger.frida_detected', 'debugger.native_hooks'],
          sdkVersions: ['4.2.*'],
          expiresAt: null,
          reason: 'A bad release.',
        },
      ],
    })
    const signals = signalsOf({
      root: { su_binary: true, test_keys: null, rom_name: 'x', eng_build: false, quantum: [1] },
      debugger: { frida_detected: true, native_hooks: false, tracer_pid: 0 },
      tamper: { app_attest_valid: false },
    })
    expect(explainScore(policy, signals, context).signals).toEqual([
      { seen_by: 'client', signal: 'root.su_binary', value: true, outcome: 'scored', points: 40 },
      {
        seen_by: 'client',
        signal: 'root.test_keys',
        value: null,
        outcome: 'not_measured',
        points: 0,
      },
      { seen_by: 'client', signal: 'root.rom_name', value: 'x', outcome: 'weightless', points: 0 },
      { seen_by: 'client', signal: 'root.eng_build', value: false, outcome: 'clean', points: 0 },
      { seen_by: 'client', signal: 'root.quantum', value: [1], outcome: 'unknown', points: 0 },
      {
        seen_by: 'client',
        signal: 'debugger.frida_detected',
        value: true,
        outcome: 'suppressed',
        points: 0,
        suppressed_because: 'A bad release.',
      },
      {
        seen_by: 'client',
        signal: 'debugger.native_hooks',
        value: false,
        outcome: 'clean',
        points: 0,
      },
      { seen_by: 'client', signal: 'debugger.tracer_pid', value: 0, outcome: 'clean', points: 0 },
      {
        seen_by: 'client',
        signal: 'tamper.app_attest_valid',
        value: false,
        outcome: 'scored',
        points: 45,
      },
    ])
  })

  it('shows the points of each category, and the floor that raised the total', () => {
    const explanation = explainScore(
      balancedPolicy,
      signalsOf({
        root: { magisk_detected: true, su_binary: true, test_keys: true, custom_rom: true },
        emulator: { is_emulator: true },
        network: { forged_request: true },
      }),
      context,
    )
    const [root, emulator, , , , network] = explanation.categories
    expect(root).toEqual({
      category: 'root',
      sum: 101,
      groups: [{ signals: ['root.custom_rom', 'root.test_keys'], cap: 30, sum: 16 }],
      cap: 70,
      strong_evidence: null,
      capped: 70,
      halved_by: ['emulator.is_emulator'],
      halved: 35,
      soft_limit: null,
      points: 35,
    })
    expect(emulator).toMatchObject({ sum: 45, points: 45, halved_by: [] })
    expect(network).toMatchObject({ sum: 60, cap: 50, capped: 50, soft_limit: 74, points: 50 })
    expect(explanation).toMatchObject({
      sum: 130,
      total: 100,
      floor: null,
      score: 100,
      action: 'BLOCK',
    })
    const frida = explainScore(
      balancedPolicy,
      signalsOf({ debugger: { frida_detected: true } }),
      context,
    )
    expect(frida).toMatchObject({
      total: 75,
      floor: { signal: 'debugger.frida_detected', score: 80 },
      score: 80,
    })
  })
})
