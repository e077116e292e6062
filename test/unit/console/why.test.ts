// How the alert page shows reasons: bars that add up, and evidence as text.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { toBars } from '../../../services/console/web/pages/event/why/bars.ts'
import {
  signalsOf,
  toBeside,
  toNotes,
  toReasonNotes,
} from '../../../services/console/web/pages/event/why/evidence.ts'
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
      { numRuns: 50 },
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
      { numRuns: 50 },
    )
  })

  it('without points stands beside the reason of its category that counts most', () => {
    const reason = (code: string, weight: number, ...signals: string[]) => {
      return { code, weight, evidence: { signals } }
    }
    const signal = (path: string, value: unknown, outcome = 'unknown') => {
      return { signal: path, value, outcome }
    }
    const beside = toBeside(
      [
        reason('DEBUGGER_ATTACHED', 10, 'debugger.adb'),
        reason('HOOKING_DETECTED', 60, 'debugger.frida_detected'),
      ],
      [
        signal('debugger.frida_detected', true, 'scored'),
        signal('debugger.modules', ['frida-agent.so']),
        signal('debugger.pid', 4_711),
        signal('debugger.nothing', []),
        signal('debugger.clean', 'x', 'clean'),
        signal('network.name', 'home'),
        ...Array.from({ length: 9 }, (_, n) => signal(`debugger.more_${n}`, 'x', 'weightless')),
      ],
    )
    expect([...beside.keys()]).toEqual(['HOOKING_DETECTED'])
    const paths = beside.get('HOOKING_DETECTED')!.map(({ signal: path }) => path)
    expect(paths).toHaveLength(5)
    expect(paths[0]).toBe('debugger.modules')
  })

  it('says what limited a reason in words that add up', () => {
    const signals = ['root.magisk_detected', 'root.su_binary']
    const evidence = { signals, caps: [{ category: 'root', cap: 70, sum: 85 }] }
    const textsOfReason = (weight: number, points: number | null) =>
      toReasonNotes({ weight, evidence }, points).map(({ text }) => text)
    const limit = 'all signs of root together count at most 70 instead of 85'
    expect(textsOfReason(70, 85)).toEqual([`85 → 70: ${limit}`])
    // Without the event its points are not known.
    expect(textsOfReason(70, null)).toEqual([limit])
    const both = {
      halved_by: ['tamper.signature_mismatch'],
      caps: [{ category: 'all', cap: 100, sum: 145 }],
    }
    expect(toReasonNotes({ weight: 25, evidence: both }, 85)).toEqual([
      {
        kind: 'limit',
        text:
          '85 → 25: counts half: tamper.signature_mismatch already shows it; ' +
          'all signs together count at most 100 instead of 145',
      },
    ])
  })

  it('begins with the points of the signals and ends with the weight, under any policy', () => {
    fc.assert(
      fc.property(anyPolicy, anySignals, fc.integer({ min: 0, max: 200 }), (policy, signals, n) => {
        for (const reason of compilePolicy(policy)(signals, context).reasons) {
          const notes = toReasonNotes(reason as never, n)
          const arrows = notes.filter(({ text }) => text.includes(' → '))
          expect(arrows.length).toBeLessThanOrEqual(1)
          for (const { text } of arrows) {
            expect(text.startsWith(`${n} → ${reason.weight}: `)).toBe(true)
            expect(n).toBeGreaterThan(reason.weight)
          }
        }
      }),
      { numRuns: 50 },
    )
  })

  it('names the count and the threshold of the rule', () => {
    const counted = { metric: 'users_per_device', count: 7, threshold: 4, window: '1d' }
    expect(textsOf({ ...counted, capped: true })).toEqual([
      'users per device: 7 in 1 day, the rule begins above 4',
      'limited to the highest score allowed',
    ])
  })

  it.each([
    [
      'late',
      { metric: 'seconds_after_first_copy', count: 7_300, threshold: 600 },
      [
        'an event came again 2 hours after its first copy',
        'a client’s own retries come within 10 minutes',
      ],
    ],
    [
      'late and from another network',
      { metric: 'seconds_after_first_copy', count: 601, threshold: 600, network_changed: true },
      [
        'an event came again 10 minutes after its first copy',
        'a client’s own retries come within 10 minutes',
        'the copy came from another network',
      ],
    ],
    [
      'soon and from another network',
      {
        metric: 'networks_of_event',
        count: 2,
        threshold: 1,
        network_changed: true,
        seconds_after_first_copy: 1,
        capped: true,
      },
      [
        'an event came again 1 second after its first copy',
        'the copy came from another network',
        'limited to the highest score allowed',
      ],
    ],
  ])('says of a replay that came %s by what it is one', (_, found, expected) => {
    const evidence = { ...found, window: '30d', signal: 'attestation.replayed' }
    const at = { replayed_at: '2026-06-01T00:00:00.000Z' }
    expect(textsOf({ ...evidence, ...at })).toEqual([
      ...expected,
      'signal: attestation.replayed',
      'replayed at: 2026-06-01T00:00:00.000Z',
    ])
  })

  it('shows unknown evidence unchanged', () => {
    expect(textsOf({ signals: [], client_score: 3, fields: ['user_id'] })).toEqual([
      'client score: 3',
      'fields: ["user_id"]',
    ])
  })
})
