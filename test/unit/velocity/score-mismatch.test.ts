// The client's own score against ours: what is compared, and which scores are ignored.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import type { Reason } from '#shared/core/scoring/score.ts'
import { decideRisk, noRiskFeatures } from '#shared/core/velocity/risk.ts'
import { findScoreMismatch, measureScoreMismatch } from '#shared/core/velocity/score-mismatch.ts'
import { makeEvents } from '../../support/telemetry/accepted-events.ts'

const verdict = (score: number, action = 'ALLOW', flags: string[] = []) => ({
  rasp_score: score,
  rasp_action: action,
  rasp_flags: flags,
})

describe('a difference of scores', () => {
  it.each([
    [12, 80, 68],
    [80, 12, 68],
    [0, 0, 0],
    [100, 0, 100],
    [0, 100, 100],
    [12.4, 80, 68],
    [1, 80, 79],
  ])('of a client at %d and ours at %d is %d', (own, ours, difference) => {
    expect(measureScoreMismatch(verdict(own), ours)).toBe(difference)
  })

  it.each([-1, -0.001, 100.001, 1e9, -1e9, Number.NaN, Infinity, -Infinity])(
    'ignores a score outside our scale: %d',
    (own) => {
      expect(measureScoreMismatch(verdict(own), 80)).toBe(0)
    },
  )

  it('is 0 for a scale that ends at 1', () => {
    expect(measureScoreMismatch(verdict(0.93, 'BLOCK'), 93)).toBe(0)
    expect(measureScoreMismatch(verdict(0.05), 80)).toBe(0)
    expect(measureScoreMismatch(verdict(1, 'BLOCK'), 100)).toBe(0)
    expect(measureScoreMismatch(verdict(0, ' review '), 60)).toBe(0)
  })

  it('is 0 for a client that does not score', () => {
    expect(measureScoreMismatch(verdict(0, ''), 80)).toBe(0)
    expect(measureScoreMismatch(verdict(0, '  '), 80)).toBe(0)
    expect(measureScoreMismatch(verdict(0, '', ['CLIENT_FLAG']), 80)).toBe(0)
    expect(measureScoreMismatch(verdict(50, ''), 100)).toBe(0)
    expect(measureScoreMismatch(verdict(-1, 'ALLOW'), 80)).toBe(0)
  })

  it('is a whole number from 0 to 100, for any client input', () => {
    const client = fc.record({
      rasp_score: fc.oneof(fc.double(), fc.integer({ min: -5, max: 105 })),
      rasp_action: fc.constantFrom('', 'ALLOW', 'REVIEW', 'BLOCK', 'deny'),
      rasp_flags: fc.array(fc.string(), { maxLength: 2 }),
    })
    fc.assert(
      fc.property(client, fc.integer({ min: 0, max: 100 }), (scorer, ours) => {
        const difference = measureScoreMismatch(scorer, ours)
        expect(Number.isInteger(difference) && difference >= 0 && difference <= 100).toBe(true)
      }),
      { numRuns: 500 },
    )
  })
})

describe('a score mismatch', () => {
  const scoreMismatch = { threshold: 30, weight: 5 }

  it('is found above the threshold, with the measured difference and both scores', () => {
    expect(findScoreMismatch(verdict(49), 80, { scoreMismatch })).toEqual({
      code: 'SCORE_MISMATCH',
      weight: 5,
      evidence: {
        metric: 'score_difference',
        count: 31,
        threshold: 30,
        window: 'event',
        client_score: 49,
      },
    })
    expect(findScoreMismatch(verdict(50), 80, { scoreMismatch })).toBeNull()
  })

  it('is not found under a policy without the rule', () => {
    expect(findScoreMismatch(verdict(0), 80, { scoreMismatch: null })).toBeNull()
    const off = { ...scoreMismatch, weight: 0 }
    expect(findScoreMismatch(verdict(0), 80, { scoreMismatch: off })).toBeNull()
  })

  it('is not found where the service’s own signals are a part of the score', () => {
    const [event] = makeEvents([{}])
    const codesOf = (signals: string[]) => {
      const reasons: Reason[] = [{ code: 'ATTESTATION_FAILED', weight: 60, evidence: { signals } }]
      const scored = { ...event!, rasp_score: 60, rasp_action: 'REVIEW' as const, reasons }
      return decideRisk(scored, defaultPolicy, noRiskFeatures).reasons.map(({ code }) => code)
    }
    expect(codesOf(['tamper.attestation_failed'])).toContain('SCORE_MISMATCH')
    expect(codesOf(['attestation.rejected'])).not.toContain('SCORE_MISMATCH')
    expect(codesOf(['connection.tor', 'root.su_binary'])).not.toContain('SCORE_MISMATCH')
  })
})
