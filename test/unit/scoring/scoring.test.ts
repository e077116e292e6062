// The score: the golden vectors, and properties for any signals and any policy.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Policy, policySchema } from '#shared/core/policies/policy.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import { type PresetName, presets } from '#shared/core/policies/presets/presets.ts'
import { actions, toAction, toSeverity } from '#shared/core/scoring/score.ts'
import { type Evidence, shareOut } from '#shared/core/scoring/score-reasons.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { ScoringContext } from '#shared/core/scoring/suppressions.ts'
import { flags } from '#shared/core/signals/flags.ts'
import { type Category, categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import {
  allSignals,
  anyPolicy,
  anySignals,
  anyValue,
  context,
  signalsOf,
} from '../../support/scoring/any-policy.ts'
import golden from '../../vectors/scores.json' with { type: 'json' }

type Vector = {
  name: string
  policy: string
  suppressions?: Policy['suppressions']
  sdk_meta?: { sdk_version: string; platform: string }
  received_at?: string
  signals: Partial<Signals>
  rasp_score: number
  rasp_action: string
  flags: string[]
  reasons: unknown[]
}

const vectors = golden.vectors as unknown as Vector[]

function toContext(vector: Vector): ScoringContext {
  const { sdk_version: sdkVersion, platform } = vector.sdk_meta ?? golden.defaults.sdk_meta
  const receivedAtMs = Date.parse(vector.received_at ?? golden.defaults.received_at)
  return { sdkVersion, platform, receivedAtMs }
}

function scoreVector(vector: Vector) {
  const preset = presets[vector.policy as PresetName]
  const policy = { ...preset, suppressions: vector.suppressions ?? [] }
  return compilePolicy(policy)(signalsOf(vector.signals), toContext(vector))
}

describe('golden scores', () => {
  it.each(vectors)('$name', (vector) => {
    const { score, action, reasons } = scoreVector(vector)
    expect({
      rasp_score: score,
      rasp_action: action,
      flags: reasons.map((reason) => reason.code),
      reasons,
    }).toEqual({
      rasp_score: vector.rasp_score,
      rasp_action: vector.rasp_action,
      flags: vector.flags,
      reasons: vector.reasons,
    })
  })

  it('are many, have unique names, and block no false positive', () => {
    expect(vectors.length).toBeGreaterThanOrEqual(65)
    expect(new Set(vectors.map((one) => one.name)).size).toBe(vectors.length)
    const falsePositives = vectors.filter((one) => one.name.startsWith('false positive: '))
    expect(falsePositives.length).toBeGreaterThanOrEqual(10)
    expect(falsePositives.filter((one) => one.rasp_action === 'BLOCK')).toEqual([])
    const platforms = new Set(vectors.map((one) => toContext(one).platform))
    expect(platforms).toContain('ios')
    expect(new Set(vectors.map((one) => one.policy))).toEqual(new Set(Object.keys(presets)))
  })

  it('are equal under the stored form of the policy', () => {
    for (const vector of vectors) {
      const preset = presets[vector.policy as PresetName]
      const text = JSON.stringify({ ...preset, suppressions: vector.suppressions ?? [] })
      const scorer = compilePolicy(policySchema.parse(JSON.parse(text)))
      expect(scorer(signalsOf(vector.signals), toContext(vector)).score).toBe(vector.rasp_score)
    }
  })
})

const scorers = Object.entries(presets).map(([name, policy]) => ({
  name,
  policy,
  score: compilePolicy(policy),
}))

const anyPreset = fc.constantFrom(...scorers)
/** A preset or a random policy, compiled. */
const anyScorer = fc.oneof(
  anyPreset,
  anyPolicy.map((policy) => ({ name: 'random', policy, score: compilePolicy(policy) })),
)

function withSignal(signals: Signals, category: Category, name: string, value: unknown): Signals {
  return { ...signals, [category]: { ...signals[category], [name]: value } }
}

describe('the score, for any policy and signals', () => {
  it('is a whole number to 100 with its action, explained to the last point by sorted reasons', () => {
    fc.assert(
      fc.property(anyScorer, anySignals, ({ score, policy }, signals) => {
        const { score: total, action, reasons } = score(signals, context)
        expect(Number.isInteger(total) && total >= 0 && total <= 100).toBe(true)
        expect(action).toBe(toAction(total, policy.thresholds))
        expect(reasons.reduce((sum, reason) => sum + reason.weight, 0)).toBe(total)
        const weights = reasons.map((reason) => reason.weight)
        expect(weights).toEqual([...weights].sort((a, b) => b - a))
        expect(new Set(reasons.map((reason) => reason.code)).size).toBe(reasons.length)
        for (const { code, weight, evidence } of reasons) {
          expect(weight).toBeGreaterThanOrEqual(0)
          expect(Object.hasOwn(flags, code)).toBe(true)
          expect((evidence as Evidence).signals.length).toBeGreaterThan(0)
        }
      }),
      { numRuns: 500 },
    )
  })

  it.each([
    ['presets', anyPreset, 1_000],
    ['random policies', anyScorer, 400],
  ])('never falls when one more signal is present: %s', (_, any, numRuns) => {
    const more = fc
      .constantFrom(...allSignals)
      .chain((one) => fc.tuple(fc.constant(one), anyValue(one.category, one.name)))
    fc.assert(
      fc.property(any, anySignals, more, ({ score }, signals, [{ category, name }, value]) => {
        const { [name]: _, ...rest } = signals[category]
        const without = score({ ...signals, [category]: rest }, context)
        const detected = score(withSignal(signals, category, name, value), context)
        expect(detected.score).toBeGreaterThanOrEqual(without.score)
        expect(actions.indexOf(detected.action)).toBeGreaterThanOrEqual(
          actions.indexOf(without.action),
        )
      }),
      { numRuns },
    )
  })

  it('never falls when a false boolean turns true, except a signal that should be true', () => {
    const booleans = allSignals.filter(
      ({ type, name }) => type === 'boolean' && name !== 'app_attest_valid',
    )
    fc.assert(
      fc.property(
        anyPreset,
        anySignals,
        fc.constantFrom(...booleans),
        ({ score }, signals, one) => {
          const clean = score(withSignal(signals, one.category, one.name, false), context)
          const detected = score(withSignal(signals, one.category, one.name, true), context)
          expect(detected.score).toBeGreaterThanOrEqual(clean.score)
        },
      ),
      { numRuns: 1_000 },
    )
  })

  it('and its reasons do not depend on the order of keys', () => {
    const reverse = (value: object) => Object.fromEntries(Object.entries(value).reverse())
    fc.assert(
      fc.property(anyScorer, anySignals, ({ score }, signals) => {
        const reversed = Object.fromEntries(
          Object.entries(signals)
            .reverse()
            .map(([category, values]) => [category, reverse(values)]),
        ) as Signals
        expect(score(reversed, context)).toEqual(score(signals, context))
      }),
      { numRuns: 300 },
    )
  })

  it('is never raised by a suppression, nor changed by one that does not apply', () => {
    const signals = fc.subarray(
      [...allSignals.map((one) => one.path), ...categories.map((one) => `${one}.*`)],
      { minLength: 1, maxLength: 40 },
    )
    const suppress = (policy: Policy, paths: string[], platforms: string[]) =>
      compilePolicy({
        ...policy,
        suppressions: [{ signals: paths, platforms, expiresAt: null, reason: 'test' }],
      })
    fc.assert(
      fc.property(anyScorer, anySignals, signals, ({ score, policy }, sent, paths) => {
        const before = score(sent, context)
        expect(suppress(policy, paths, ['android'])(sent, context).score).toBeLessThanOrEqual(
          before.score,
        )
        expect(suppress(policy, paths, ['ios'])(sent, context)).toEqual(before)
      }),
      { numRuns: 300 },
    )
  })
})

describe('tri-state', () => {
  const score = compilePolicy(balancedPolicy)

  it('reads absent and null as not measured, never as false', () => {
    expect(score(signalsOf({ tamper: { app_attest_valid: false } }), context).score).toBe(45)
    expect(score(signalsOf({ tamper: { app_attest_valid: null } }), context).score).toBe(0)
    expect(score(signalsOf(), context)).toEqual({ score: 0, action: 'ALLOW', reasons: [] })
  })

  it('gives keys of the object prototype no weight', () => {
    const hostile = JSON.parse('{"constructor":true,"toString":true,"hasOwnProperty":true}')
    expect(score(signalsOf({ root: hostile as Record<string, unknown> }), context).score).toBe(0)
  })
})

describe('thresholds and severity', () => {
  it('lie where the contract puts them', () => {
    const thresholds = balancedPolicy.thresholds
    const drawn = [0, 39, 40, 74, 75, 100].map((at) => toAction(at, thresholds))
    expect(drawn).toEqual(['ALLOW', 'ALLOW', 'REVIEW', 'REVIEW', 'BLOCK', 'BLOCK'])
    expect([0, 39, 40, 59, 60, 79, 80, 100].map(toSeverity)).toEqual([
      ...['LOW', 'LOW', 'MEDIUM', 'MEDIUM'],
      ...['HIGH', 'HIGH', 'CRITICAL', 'CRITICAL'],
    ])
  })
})

describe('shareOut', () => {
  it('splits whole points in proportion, so that they add up', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 0, max: 100 }),
        (parts, total) => {
          const shares = shareOut(parts, total)
          expect(shares.reduce((a, b) => a + b, 0)).toBe(total)
          const sum = parts.reduce((a, b) => a + b, 0)
          shares.forEach((share, index) => {
            expect(Math.abs(share - (parts[index]! * total) / sum)).toBeLessThan(1)
          })
        },
      ),
    )
  })
})
