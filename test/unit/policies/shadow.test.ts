// Shadow policies: which version decides, when the features of the active policy suffice, and that
// no failure of a shadow affects active decisions.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { type Policy, toPolicyHash } from '#shared/core/policies/policy.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import {
  compileShadow,
  decideShadow,
  findShadowVersion,
  sharesRiskFeatures,
} from '#shared/core/policies/shadow.ts'
import { type ComparedSessions, sumCompared } from '#shared/core/policies/shadow-comparison.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { sandboxForced } from '#shared/core/telemetry/sandbox.ts'
import { countKey } from '#shared/core/velocity/correlation.ts'
import { decideRisk, noRiskFeatures, type RiskFeatures } from '#shared/core/velocity/risk.ts'
import type { ShadowDecision } from '#shared/io/policies/shadow-decision-store.ts'
import {
  createShadowDecisions,
  type Decided,
} from '../../../services/scorer/shadow/shadow-decisions.ts'
import { anyPolicy, anySignals } from '../../support/scoring/any-policy.ts'
import { makeEvents, signalsOf } from '../../support/telemetry/accepted-events.ts'

const nothing = noRiskFeatures
const [blocked] = makeEvents([{ signals: signalsOf.BLOCK }]) as [AcceptedEvent]

describe('the version that decides', () => {
  const versions = [
    { version: 1, policyHash: 'a', effectiveAtMs: 100 },
    { version: 2, policyHash: null, effectiveAtMs: 200 },
    { version: 3, policyHash: 'b', effectiveAtMs: 300 },
  ]

  it('is the latest version in effect when the event was received', () => {
    const at = (ms: number) => findShadowVersion(versions, ms)?.version ?? null
    expect([99, 100, 199, 200, 299, 300, 9_999].map(at)).toEqual([null, 1, 1, null, null, 3, 3])
    expect(findShadowVersion([], 1)).toBeNull()
  })
})

describe('the risk features of the active policy', () => {
  const withRules = (velocity: Policy['velocity'], more: Partial<Policy> = {}) => ({
    ...defaultPolicy,
    velocity,
    ...more,
  })
  const rule = { metric: 'users_per_device', windowSeconds: 300, threshold: 3, weight: 9 } as const

  it('suffice for rules that need no other counts', () => {
    expect(sharesRiskFeatures(defaultPolicy, defaultPolicy)).toBe(true)
    expect(sharesRiskFeatures(withRules([rule]), withRules([{ ...rule, threshold: 4 }]))).toBe(true)
    expect(sharesRiskFeatures(withRules([rule]), withRules([{ ...rule, weight: 50 }]))).toBe(true)
    expect(sharesRiskFeatures(withRules([]), withRules([{ ...rule, weight: 0 }]))).toBe(true)
    expect(sharesRiskFeatures(withRules([rule]), withRules([], { signalsMissing: null }))).toBe(
      true,
    )
  })

  it('do not suffice for a rule that needs another count', () => {
    expect(sharesRiskFeatures(withRules([rule]), withRules([{ ...rule, threshold: 2 }]))).toBe(
      false,
    )
    expect(
      sharesRiskFeatures(withRules([rule]), withRules([{ ...rule, windowSeconds: 301 }])),
    ).toBe(false)
    expect(sharesRiskFeatures(withRules([{ ...rule, weight: 0 }]), withRules([rule]))).toBe(false)
    expect(sharesRiskFeatures(withRules([]), withRules([rule]))).toBe(false)
    const { signalsMissing } = defaultPolicy
    const more = { ...signalsMissing!, weight: signalsMissing!.weight + 1 }
    expect(sharesRiskFeatures(withRules([]), withRules([], { signalsMissing: more }))).toBe(false)
    expect(sharesRiskFeatures(withRules([], { signalsMissing: null }), withRules([]))).toBe(false)
  })

  it('give no finding of a rule that the shadow has switched off', () => {
    const evidence = { metric: 'missing_categories', count: 2, threshold: 0, window: '24h' }
    const features: RiskFeatures = {
      ...nothing,
      missing: { code: 'SIGNALS_MISSING', weight: 15, evidence },
    }
    const off = compileShadow(withRules([], { signalsMissing: null }))
    const codes = (shadow: typeof off) =>
      decideShadow(blocked, shadow, features).risk.reasons.map(({ code }) => code)
    expect(codes(off)).not.toContain('SIGNALS_MISSING')
    expect(codes(compileShadow(defaultPolicy))).toContain('SIGNALS_MISSING')
  })
})

describe('a decision', () => {
  it('of the active policy as its own shadow equals the active decision', () => {
    const risk = decideRisk(blocked, defaultPolicy, nothing)
    expect(decideShadow(blocked, compileShadow(defaultPolicy), nothing)).toEqual({
      raspScore: blocked.rasp_score,
      risk,
    })
  })

  it('equals that of the same policy as the active one, for any two policies', () => {
    const counts = defaultPolicy.velocity.map(
      (rule) => [countKey(rule), rule.threshold + 1] as const,
    )
    fc.assert(
      fc.property(
        anyPolicy,
        anyPolicy,
        anySignals,
        fc.subarray(counts),
        (active, shadow, ...more) => {
          const [signals, exceeded] = more
          const features: RiskFeatures = { ...nothing, counts: new Map(exceeded) }
          const [scored] = makeEvents([{ signals, policy: active, receivedAtMs: 1 }])
          const [expected] = makeEvents([{ signals, policy: shadow, receivedAtMs: 1 }])
          expect(decideShadow(scored!, compileShadow(shadow), features)).toEqual({
            raspScore: expected!.rasp_score,
            risk: decideRisk(expected!, shadow, features),
          })
        },
      ),
      { numRuns: 300 },
    )
  })

  it('on a sandbox test device is the forced one, at the shadow’s own threshold', () => {
    const [event] = makeEvents([{ deviceId: 'test-review', signals: signalsOf.BLOCK }])
    const reasons = [{ code: sandboxForced, weight: 40, evidence: {} }]
    const forced = { ...event!, rasp_score: 40, rasp_action: 'REVIEW' as const, reasons }
    const strict = compileShadow({ ...defaultPolicy, thresholds: { review: 30, block: 60 } })
    expect(decideShadow(forced, strict, nothing).risk).toMatchObject({
      riskScore: 30,
      action: 'REVIEW',
      reasons: [{ code: sandboxForced, weight: 30 }],
    })
  })
})

type Counted = { skipped: Record<string, number>; decided: number; logged: string[] }

function makeShadow(more: Partial<Parameters<typeof createShadowDecisions>[0]> = {}) {
  const counted: Counted = { skipped: {}, decided: 0, logged: [] }
  const written: ShadowDecision[] = []
  const clock = { nowMs: 0 }
  const policyHash = toPolicyHash(presets.strict)
  const shadow = createShadowDecisions({
    delayMaxMs: 2_000,
    versions: {
      refresh: async () => undefined,
      of: (tenantId) => (tenantId === 'acme' ? [{ version: 7, policyHash, effectiveAtMs: 0 }] : []),
      any: () => true,
    },
    findPolicy: async () => presets.strict,
    loadRiskFeatures: async (events) => events.map(() => nothing),
    insertDecisions: async (decisions) => {
      written.push(...decisions)
    },
    observe: {
      timed: (_, work) => work,
      decided: (events) => {
        counted.decided += events
      },
      skipped: (why, events) => {
        counted.skipped[why] = (counted.skipped[why] ?? 0) + events
      },
      failed: (what) => {
        counted.skipped[what] = (counted.skipped[what] ?? 0) + 1
      },
    },
    log: {
      warn: (_: unknown, text?: string) => {
        counted.logged.push(text ?? '')
      },
    },
    nowMs: () => clock.nowMs,
    ...more,
  })
  return { shadow, counted, written, clock }
}

const decidedOf = (events: readonly AcceptedEvent[]): Decided[] =>
  events.map((event) => {
    const risk = decideRisk(event, defaultPolicy, nothing)
    return { event, policy: defaultPolicy, features: nothing, risk }
  })
const batch = decidedOf([blocked, ...makeEvents([{ tenantId: 'globex' }])])

describe('recording', () => {
  it('writes a row for each event of a tenant with a shadow, and none for others', async () => {
    const { shadow, counted, written } = makeShadow()
    await shadow.record(batch)
    expect(written.map(({ event, shadow }) => [event.tenant_id, shadow.version])).toEqual([
      ['acme', 7],
    ])
    expect(counted).toEqual({ skipped: {}, decided: 1, logged: [] })
  })

  it('skips a missing policy, counts every event and logs it once', async () => {
    const { shadow, counted } = makeShadow({ findPolicy: async () => null })
    await shadow.record(batch)
    await shadow.record(batch)
    expect(counted).toMatchObject({ skipped: { policy: 2 }, decided: 0 })
    expect(counted.logged).toHaveLength(1)
  })

  it('skips a policy that cannot be compiled, and one that cannot decide', async () => {
    for (const [policy, why] of [
      [null as unknown as Policy, 'policy'],
      [{ ...presets.strict, categories: null } as unknown as Policy, 'policy'],
      [{ ...presets.strict, velocity: [null] } as unknown as Policy, 'store'],
    ] as const) {
      const { shadow, counted } = makeShadow({ findPolicy: async () => policy })
      await shadow.record(batch)
      expect(counted).toMatchObject({ skipped: { [why]: 1 }, decided: 0 })
    }
  })

  it('pauses after a failure of the store and then continues', async () => {
    let broken = true
    const rows: ShadowDecision[] = []
    const { shadow, counted, clock } = makeShadow({
      insertDecisions: async (decisions) => {
        if (broken) throw new Error('no table')
        rows.push(...decisions)
      },
    })
    await shadow.record(batch)
    await shadow.record(batch)
    expect(counted).toMatchObject({ skipped: { store: 1, resting: 1 }, decided: 0 })
    expect(counted.logged).toHaveLength(1)
    broken = false
    clock.nowMs = 10_000
    await shadow.record(batch)
    expect(rows).toHaveLength(1)
  })

  it('delays no decision for a store that does not answer, and writes nothing late', async () => {
    let answer: (features: RiskFeatures[]) => void = () => undefined
    const pending = new Promise<RiskFeatures[]>((resolve) => {
      answer = resolve
    })
    const { shadow, counted, written, clock } = makeShadow({
      findPolicy: async () => presets['regulated-banking'],
      loadRiskFeatures: () => pending,
      delayMaxMs: 5,
    })
    const lean = { ...defaultPolicy, velocity: [] }
    await shadow.record(batch.map((one) => ({ ...one, policy: lean })))
    expect(counted).toMatchObject({
      skipped: { late: 1 },
      logged: ['shadow decisions take too long'],
    })
    clock.nowMs = 60_000
    await shadow.record(batch)
    expect(counted.skipped).toEqual({ late: 1, resting: 1 })
    answer([nothing])
    await pending
    await new Promise((resolve) => setImmediate(resolve))
    expect(written).toEqual([])
  })

  it('continues with cached versions when policies cannot be queried', async () => {
    const versions = {
      refresh: async () => {
        throw new Error('away')
      },
      of: () => [{ version: 1, policyHash: 'a', effectiveAtMs: 0 }],
      any: () => true,
    }
    const { shadow, counted } = makeShadow({ versions })
    await shadow.record(batch)
    await shadow.record(batch)
    expect(counted).toMatchObject({ skipped: { versions: 2 }, decided: 4 })
    expect(counted.logged).toHaveLength(1)
  })
})

describe('a comparison', () => {
  const group = (active: number, shadow: number, sessions: number): ComparedSessions => ({
    activeActions: active,
    shadowActions: shadow,
    sessions,
    platform: 'ios',
    sdkVersion: '4.2.0',
    activeFlags: ['ROOTED'],
    shadowFlags: ['EMULATOR'],
    events: [
      [sessions, 0, 0],
      [0, 0, 1],
      [0, 0, 0],
    ],
  })

  it('counts each session once, by what changes for it', () => {
    const sum = sumCompared([
      group(0b010, 0b100, 2),
      group(0b110, 0b100, 1),
      group(0b100, 0b010, 3),
      group(0b110, 0b001, 4),
      group(0b001, 0b010, 7),
      group(1, 1, 5),
    ])
    const changes = { new: 7, gone: 4, stricter: 2, milder: 3, unchanged: 1 }
    expect(sum).toMatchObject({
      sessions: 22,
      alerts: { active: 2 + 2 + 3 + 8, shadow: 2 + 1 + 3 + 7 },
      by_action: { REVIEW: { active: 7, shadow: 10 }, BLOCK: { active: 8, shadow: 3 } },
      changes,
      by_platform: [{ name: 'ios', ...changes }],
      by_flag: [
        { name: 'EMULATOR', new: 7, gone: 0, stricter: 2, milder: 0, unchanged: 0 },
        { name: 'ROOTED', new: 0, gone: 4, stricter: 0, milder: 3, unchanged: 0 },
      ],
    })
  })

  it('sums events by action', () => {
    const sum = sumCompared([group(0b010, 0b100, 2), group(0b110, 0b100, 1), group(1, 1, 5)])
    expect(sum.matrix).toEqual({
      ALLOW: { ALLOW: 8, REVIEW: 0, BLOCK: 0 },
      REVIEW: { ALLOW: 0, REVIEW: 0, BLOCK: 3 },
      BLOCK: { ALLOW: 0, REVIEW: 0, BLOCK: 0 },
    })
  })
})
