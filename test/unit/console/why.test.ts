// How the alert page shows reasons: bars that add up, and evidence as text.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { toBars } from '../../../services/console/web/pages/event/why/bars.ts'
import { signalsOf, toNotes } from '../../../services/console/web/pages/event/why/evidence.ts'
import { anyPolicy, anySignals, context } from '../../support/scoring/any-policy.ts'

const textsOf = (evidence: Record<string, unknown>) => toNotes(evidence).map(({ text }) => text)

describe('the bars of the waterfall', () => {
  it('lead from 0 to the score without a gap, after any limit or floor', () => {
    fc.assert(
      fc.property(anyPolicy, anySignals, (policy, signals) => {
        const { score, reasons } = compilePolicy(policy)(signals, context)
        const { bars, unexplained } = toBars(reasons, score)
        expect(unexplained).toBe(0)
        expect(bars.map(({ from }) => from)).toEqual([0, ...bars.map(({ to }) => to)].slice(0, -1))
        expect(bars.at(-1)?.to ?? 0).toBe(score)
      }),
    )
  })

  it('show points that no reason explains', () => {
    const reason = { code: 'ROOTED', weight: 30, evidence: {} }
    expect(toBars([reason], 75).unexplained).toBe(45)
  })
})

describe('evidence as text', () => {
  it('names everything that changed points, under any policy', () => {
    fc.assert(
      fc.property(anyPolicy, anySignals, (policy, signals) => {
        for (const { evidence } of compilePolicy(policy)(signals, context).reasons) {
          const { signals: paths, ...changes } = evidence as Record<string, unknown[]>
          expect(signalsOf(evidence)).toEqual(paths)
          const { caps = [], ...others } = changes
          expect(toNotes(evidence)).toHaveLength(caps.length + Object.keys(others).length)
          expect(textsOf(evidence).join()).not.toMatch(/undefined|\[object/)
        }
      }),
    )
  })

  it('names the count and the threshold of the rule', () => {
    const counted = { metric: 'users_per_device', count: 7, threshold: 4, window: '1d' }
    expect(textsOf({ ...counted, capped: true })).toEqual([
      'users per device: 7 in 1 day, the rule begins above 4',
      'limited to the highest score allowed',
    ])
  })

  it('shows unknown evidence unchanged', () => {
    expect(textsOf({ signals: [], client_score: 3, fields: ['user_id'] })).toEqual([
      'client score: 3',
      'fields: ["user_id"]',
    ])
  })
})
