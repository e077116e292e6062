// Correlation turns risk features into points: nothing at or below a threshold, reasons that add up
// to the score, and never more than 100.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import type { Policy, VelocityRule } from '#shared/core/policies/policy.ts'
import { velocityMetrics } from '#shared/core/policies/velocity-metrics.ts'
import { type Score, toAction } from '#shared/core/scoring/score.ts'
import { flagCodes } from '#shared/core/signals/flag-codes.ts'
import {
  type Counts,
  correlate as correlateFindings,
  countKey,
  findVelocity,
  type RiskLimits,
  toWindowText,
} from '#shared/core/velocity/correlation.ts'
import { velocityRule } from '../../support/velocity/velocity-rule.ts'

const { thresholds } = defaultPolicy
const limits = { thresholds, correlationAloneMax: 'REVIEW' as const }
type Entry = [VelocityRule, number]
const counted = (...entries: Entry[]): Counts =>
  new Map(entries.map(([of, count]) => [countKey(of), count]))

function correlate(
  scored: Pick<Score, 'score' | 'reasons'>,
  counts: Counts,
  policy: RiskLimits & Pick<Policy, 'velocity'>,
) {
  return correlateFindings(scored, findVelocity(policy.velocity, counts), policy)
}

describe('correlation', () => {
  it('adds the points of the highest step that a count is above, and names it', () => {
    const steps = [
      { above: 29, weight: 45 },
      { above: 99, weight: 60 },
    ]
    const policy = { velocity: [velocityRule({ steps })], ...limits }
    const riskOf = (count: number) =>
      correlate({ score: 0, reasons: [] }, counted([velocityRule({}), count]), policy)
    expect([20, 21, 29, 30, 99, 100].map((count) => riskOf(count).riskScore)).toEqual([
      ...[0, 30, 30, 45, 45, 60],
    ])
    expect(riskOf(29).reasons[0]!.evidence).not.toHaveProperty('above')
    expect(riskOf(30).reasons).toEqual([
      {
        code: 'HIGH_VELOCITY',
        weight: 45,
        evidence: {
          metric: 'sessions_per_device',
          count: 30,
          threshold: 20,
          above: 29,
          window: '5m',
        },
      },
    ])
  })

  it('adds nothing at the threshold and the rule’s weight above it', () => {
    const policy = { velocity: [velocityRule({})], ...limits }
    const scored = { score: 20, reasons: [{ code: 'APP_CLONED', weight: 20, evidence: {} }] }
    expect(correlate(scored, counted([velocityRule({}), 20]), policy)).toEqual({
      riskScore: 20,
      action: 'ALLOW',
      reasons: scored.reasons,
    })
    const risk = correlate(scored, counted([velocityRule({}), 21]), policy)
    expect(risk).toMatchObject({ riskScore: 50, action: 'REVIEW' })
    expect(risk.reasons[0]).toEqual({
      code: 'HIGH_VELOCITY',
      weight: 30,
      evidence: { metric: 'sessions_per_device', count: 21, threshold: 20, window: '5m' },
    })
  })

  it('counts only the heaviest rule of a flag', () => {
    const light = velocityRule({ windowSeconds: 3600, weight: 10 })
    const heavier = velocityRule({ windowSeconds: 300, weight: 25 })
    const policy = { velocity: [light, heavier], ...limits }
    const risk = correlate({ score: 0, reasons: [] }, counted([light, 99], [heavier, 99]), policy)
    expect(risk.riskScore).toBe(25)
    expect(risk.reasons).toHaveLength(1)
    expect(risk.reasons[0]?.evidence).toMatchObject({ window: '5m' })
  })

  it('reads a missing count as 0 and ignores a rule of weight 0', () => {
    const idle = velocityRule({ weight: 0, threshold: 0, windowSeconds: 60 })
    const policy = { velocity: [velocityRule({}), idle], ...limits }
    const risk = correlate({ score: 5, reasons: [] }, counted([idle, 50]), policy)
    expect(risk).toEqual({ riskScore: 5, action: 'ALLOW', reasons: [] })
  })

  it('marks a weight as capped when the limit of 100 reduced it', () => {
    const policy = { velocity: [velocityRule({})], ...limits }
    const scored = { score: 90, reasons: [{ code: 'ROOTED', weight: 90, evidence: {} }] }
    const risk = correlate(scored, counted([velocityRule({}), 500]), policy)
    expect(risk.riskScore).toBe(100)
    expect(risk.reasons[1]).toMatchObject({ weight: 10, evidence: { capped: true } })
  })

  it('is at most REVIEW alone, unless the policy allows BLOCK', () => {
    const heavier = [
      velocityRule({ weight: 60 }),
      velocityRule({ metric: 'users_per_device', weight: 50 }),
    ]
    const known = counted(...heavier.map((one): Entry => [one, 500]))
    const clean = { score: 4, reasons: [{ code: 'DEVELOPER_SETTINGS', weight: 4, evidence: {} }] }
    const risk = correlate(clean, known, { velocity: heavier, ...limits })
    expect(risk).toMatchObject({ riskScore: thresholds.block - 1, action: 'REVIEW' })
    expect(risk.reasons.map(({ code, weight }) => [code, weight])).toEqual([
      ['HIGH_VELOCITY', 60],
      ['MANY_USERS_PER_DEVICE', 10],
      ['DEVELOPER_SETTINGS', 4],
    ])
    expect(risk.reasons[1]?.evidence).toMatchObject({ capped: true })
    const block = { velocity: heavier, thresholds, correlationAloneMax: 'BLOCK' as const }
    expect(correlate(clean, known, block)).toMatchObject({ riskScore: 100, action: 'BLOCK' })
    // Together with signals that cause a REVIEW by themselves the limit does not apply.
    const rooted = { score: 40, reasons: [{ code: 'ROOTED', weight: 40, evidence: {} }] }
    const both = correlate(rooted, known, { velocity: heavier, ...limits })
    expect(both).toMatchObject({ riskScore: 100, action: 'BLOCK' })
  })

  it('keeps score, action and sum of reasons consistent for any policy and counts', () => {
    const anyRule = fc.record({
      metric: fc.constantFrom(...velocityMetrics),
      windowSeconds: fc.constantFrom(60, 300, 3600, 86_400, 2_592_000),
      threshold: fc.nat(50),
      weight: fc.nat(100),
    })
    fc.assert(
      fc.property(
        fc.array(anyRule, { maxLength: 6 }),
        fc.array(fc.nat(100), { minLength: 6, maxLength: 6 }),
        fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 2 }),
        fc.constantFrom('REVIEW' as const, 'BLOCK' as const),
        (velocity, counts, weights, correlationAloneMax) => {
          const score = weights.reduce((a, b) => a + b, 0)
          const reasons = weights.map((weight) => ({ code: 'ROOTED', weight, evidence: {} }))
          const known = counted(...velocity.map((one, n): Entry => [one, counts[n]!]))
          const scored = { score, reasons }
          const risk = correlate(scored, known, { velocity, thresholds, correlationAloneMax })
          expect(risk.riskScore).toBeGreaterThanOrEqual(score)
          expect(risk.riskScore).toBeLessThanOrEqual(100)
          const sum = risk.reasons.reduce((total, { weight }) => total + weight, 0)
          expect(sum).toBe(risk.riskScore)
          expect(risk.action).toBe(toAction(risk.riskScore, thresholds))
          if (correlationAloneMax === 'REVIEW' && score < thresholds.review) {
            expect(risk.action).not.toBe('BLOCK')
          }
          for (const { code } of risk.reasons) expect(flagCodes).toContain(code)
          const sorted = [...risk.reasons].sort((a, b) => b.weight - a.weight)
          expect(risk.reasons.map((one) => one.weight)).toEqual(sorted.map((one) => one.weight))
          // The input is unchanged: a redelivered batch decides from the same.
          expect(scored).toEqual({ score, reasons })
        },
      ),
    )
  })

  it('adds the details of a count to its evidence', () => {
    const flips = velocityRule({
      metric: 'signal_flips',
      threshold: 3,
      weight: 10,
      windowSeconds: 86_400,
    })
    const details = new Map([[countKey(flips), { signal: 'root.su_binary' }]])
    const findings = findVelocity([flips], counted([flips, 5]), details)
    expect(correlateFindings({ score: 0, reasons: [] }, findings, defaultPolicy).reasons).toEqual([
      {
        code: 'SIGNAL_FLAPPING',
        weight: 10,
        evidence: {
          metric: 'signal_flips',
          count: 5,
          threshold: 3,
          window: '1d',
          signal: 'root.su_binary',
        },
      },
    ])
  })

  it('writes a window in its largest whole unit', () => {
    expect([60, 90, 300, 3600, 86_400, 90_000, 2_592_000].map(toWindowText)).toEqual([
      '1m',
      '90s',
      '5m',
      '1h',
      '1d',
      '25h',
      '30d',
    ])
  })
})
