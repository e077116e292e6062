// Server signals in scoring: a policy weighs them as those of the client, a body that carries them
// moves nothing, and the client's word of a verdict that the service verified scores nothing.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Policy, policySchema, toPolicyHash } from '#shared/core/policies/policy.ts'
import { checkPolicy } from '#shared/core/policies/policy-check.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import { explainScore } from '#shared/core/scoring/score-explanation.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { contradictsVerified, verifiedHereText } from '#shared/core/scoring/verified-verdicts.ts'
import type { ServerSignals, Signals } from '#shared/core/signals/signal-definition.ts'
import { seed } from '../../support/process/seed.ts'
import {
  anyPolicy,
  anyServerSignals,
  anySignals,
  context,
  signalsOf,
} from '../../support/scoring/any-policy.ts'

const { serverCategories: _, ...older } = balancedPolicy
const olderPolicy: Policy = policySchema.parse(older)

const weighing = (change: Partial<Policy> = {}): Policy =>
  policySchema.parse({
    ...olderPolicy,
    floors: [],
    serverCategories: {
      attestation: {
        cap: 80,
        signals: {
          rejected: 30,
          app_unknown: 60,
          shared_key: 50,
          hardware_backed: { whenFalse: 5 },
          os_patch_age_days: { atLeast: 365, weight: 7 },
          pi_device: { values: { MEETS_BASIC_INTEGRITY: 15, '(empty)': 35 } },
          pi_app: { values: { UNRECOGNIZED_VERSION: 60 } },
        },
        groups: [{ cap: 40, signals: ['rejected', 'pi_device'] }],
      },
      connection: { cap: 20, signals: { hosting: 12, tor: 20, country: { values: { XX: 9 } } } },
    },
    ...change,
  })

function scoreBy(policy: Policy, server: ServerSignals, signals: Partial<Signals> = {}) {
  const sent = signalsOf(signals)
  const { score, action, reasons } = compilePolicy(policy)(sent, context, server)
  const steps = explainScore(policy, sent, context, server)
  expect([score, action, reasons]).toEqual([steps.score, steps.action, steps.reasons])
  const codes = Object.fromEntries(reasons.map(({ code, weight }) => [code, weight]))
  return { score, action, codes, reasons, steps }
}

const stepOf = ({ steps }: ReturnType<typeof scoreBy>, signal: string) =>
  steps.signals.find((one) => one.signal === signal)

describe('a policy with server categories', () => {
  it('weighs what the service observed as what a client sends', () => {
    const rejected = scoreBy(weighing(), { attestation: { rejected: true } })
    expect(rejected).toMatchObject({ score: 30, codes: { ATTESTATION_FAILED: 30 } })
    expect(rejected.reasons[0]!.evidence.signals).toEqual(['attestation.rejected'])
    expect(scoreBy(weighing(), { attestation: { os_patch_age_days: 364 } }).score).toBe(0)
    expect(scoreBy(weighing(), { attestation: { os_patch_age_days: 365 } }).score).toBe(7)
    expect(scoreBy(weighing(), { attestation: { hardware_backed: false } }).score).toBe(5)
    expect(scoreBy(weighing(), { attestation: { pi_device: [] } }).score).toBe(35)
    expect(scoreBy(weighing(), { connection: { country: 'XX', hosting: true } }).score).toBe(20)
    expect(scoreBy(weighing(), { attestation: { rejected: null } }).score).toBe(0)
  })

  it('limits them by groups, caps, strong evidence and soft categories', () => {
    const grouped = { rejected: true, pi_device: ['MEETS_BASIC_INTEGRITY'] }
    expect(scoreBy(weighing(), { attestation: grouped }).score).toBe(40)
    const critical = { app_unknown: true, shared_key: true }
    expect(scoreBy(weighing(), { attestation: critical }).score).toBe(80)
    const soft = weighing({ softCategories: ['attestation', 'connection'] })
    expect(scoreBy(soft, { attestation: critical })).toMatchObject({ score: 74, action: 'REVIEW' })
  })

  it('can name them in floors, halvings and suppressions', () => {
    const floors = weighing({
      floors: [
        { score: 66, signals: ['attestation.rejected', 'root.custom_rom'], need: 'all' },
        { score: 50, signals: ['connection.tor'] },
      ],
      halving: [{ category: 'root', confirmedBy: ['attestation.rejected'] }],
    })
    const custom = { root: { custom_rom: true } }
    expect(scoreBy(floors, { attestation: { rejected: true } }, custom).score).toBe(66)
    expect(scoreBy(floors, { connection: { tor: true } }).score).toBe(50)
    const root = { root: { rooted: true } }
    const halved = scoreBy(floors, { attestation: { rejected: true } }, root)
    // 40 counts half beside 30, which is more than 40 alone.
    expect(halved.score).toBe(50)
    const suppressed = weighing({
      suppressions: [{ signals: ['attestation.*'], expiresAt: null, reason: 'A bad status list.' }],
    })
    const silent = scoreBy(suppressed, { attestation: { rejected: true } })
    expect(silent.score).toBe(0)
    expect(stepOf(silent, 'attestation.rejected')).toMatchObject({
      outcome: 'suppressed',
      suppressed_because: 'A bad status list.',
    })
  })

  it('explains who saw a signal', () => {
    const both = scoreBy(
      weighing(),
      { attestation: { rejected: true, later_name: true }, connection: { asn: 'AS64500' } },
      { root: { su_binary: true } },
    )
    expect(
      both.steps.signals.map(({ signal, seen_by, outcome }) => [signal, seen_by, outcome]),
    ).toEqual([
      ['root.su_binary', 'client', 'scored'],
      ['attestation.rejected', 'server', 'scored'],
      ['attestation.later_name', 'server', 'unknown'],
      ['connection.asn', 'server', 'weightless'],
    ])
  })

  it('can be set only with names of the catalog', () => {
    const faults = (change: Record<string, unknown>) => {
      const checked = checkPolicy({ ...weighing(), ...change })
      return checked.ok ? [] : checked.errors.map(({ path }) => path)
    }
    expect(faults({})).toEqual([])
    expect(
      faults({
        serverCategories: { attestation: { cap: 5, signals: { su_binary: 1, missing: 2 } } },
      }),
    ).toEqual(['$.serverCategories.attestation.signals.su_binary'])
    expect(faults({ serverCategories: { tamper: { cap: 5, signals: {} } } })).toEqual([
      '$.serverCategories.tamper',
    ])
    expect(faults({ requiredSignals: { signals: ['attestation.verified'], weight: 5 } })).toEqual([
      '$.requiredSignals.signals[0]',
    ])
    expect(faults({ signals: { 'attestation.mine': { type: 'boolean' } } })).toEqual([
      '$.signals.attestation.mine',
    ])
    expect(
      faults({ floors: [{ score: 5, signals: ['connection.tor', 'connection.no'] }] }),
    ).toEqual(['$.floors[0].signals[1]'])
  })
})

describe('a document without server categories', () => {
  it('scores every event as if there were no server signals, and keeps its address', () => {
    expect(toPolicyHash(policySchema.parse(JSON.parse(JSON.stringify(olderPolicy))))).toBe(
      toPolicyHash(olderPolicy),
    )
    fc.assert(
      fc.property(anyPolicy, anySignals, anyServerSignals, (policy, signals, server) => {
        const { serverCategories: _, ...document } = policy
        const score = compilePolicy(document)
        expect(score(signals, context, server)).toEqual(score(signals, context))
      }),
      { seed, numRuns: 300 },
    )
  })
})

describe('a body with categories of the service', () => {
  it('moves nothing', () => {
    const forged = {
      attestation: { rejected: true, verified: true, pi_device: [] },
      connection: { tor: true },
    }
    const client = { tamper: { pi_app_verdict: 'UNRECOGNIZED_VERSION' } }
    const sent = { ...signalsOf(client), ...forged } as Signals
    const score = compilePolicy(weighing())
    expect(score(sent, context)).toEqual(score(signalsOf(client), context))
    expect(score(sent, context).score).toBe(60)
    const steps = explainScore(weighing(), sent, context)
    expect(steps.signals.map(({ signal }) => signal)).toEqual(['tamper.pi_app_verdict'])
  })
})

describe('the client’s word of a verdict that the service verified', () => {
  const word = {
    tamper: {
      pi_device_verdict: [],
      pi_app_verdict: 'UNRECOGNIZED_VERSION',
      attestation_failed: true,
      app_attest_valid: false,
      time_spoofed: true,
    },
  }

  it('scores nothing, and its explanation says why', () => {
    const play = scoreBy(
      weighing(),
      { attestation: { pi_device: ['MEETS_DEVICE_INTEGRITY'] } },
      word,
    )
    expect(stepOf(play, 'tamper.pi_app_verdict')).toMatchObject({
      outcome: 'suppressed',
      points: 0,
      suppressed_because: verifiedHereText,
    })
    expect(stepOf(play, 'tamper.attestation_failed')).toMatchObject({ outcome: 'scored' })
    const evidence = scoreBy(weighing(), { attestation: { verified: true } }, word)
    expect(stepOf(evidence, 'tamper.attestation_failed')!.suppressed_because).toBe(verifiedHereText)
    expect(stepOf(evidence, 'tamper.app_attest_valid')!.suppressed_because).toBe(verifiedHereText)
    expect(stepOf(evidence, 'tamper.pi_app_verdict')!.outcome).toBe('scored')
    expect(stepOf(evidence, 'tamper.time_spoofed')!.outcome).toBe('scored')
    const both = { verified: true, pi_device: ['MEETS_DEVICE_INTEGRITY'] }
    expect(scoreBy(weighing(), { attestation: both }, word).score).toBe(8)
  })

  it('counts while nothing was verified', () => {
    const score = scoreBy(
      weighing(),
      { attestation: { missing: true, verified: false } },
      word,
    ).score
    expect(score).toBe(scoreBy(weighing(), {}, word).score)
    expect(scoreBy(olderPolicy, { attestation: { verified: true } }, word).score).toBe(score)
  })
})

describe('a claim of the client', () => {
  const claims: [string, Record<string, unknown>, Record<string, unknown>, boolean][] = [
    [
      'of a valid assertion beside rejected evidence',
      { app_attest_valid: true },
      { rejected: true },
      true,
    ],
    [
      'of a valid assertion beside verified evidence',
      { app_attest_valid: true },
      { verified: true },
      false,
    ],
    [
      'that its attestation failed, which harms itself',
      { attestation_failed: true },
      { verified: true },
      false,
    ],
    [
      'of a recognised app',
      { pi_app_verdict: 'PLAY_RECOGNIZED' },
      { pi_app: 'UNRECOGNIZED_VERSION' },
      true,
    ],
    [
      'in another spelling',
      { pi_app_verdict: 'playRecognized' },
      { pi_app: 'UNRECOGNIZED_VERSION' },
      true,
    ],
    [
      'of an app that Google did not evaluate',
      { pi_app_verdict: 'PLAY_RECOGNIZED' },
      { pi_app: 'UNEVALUATED' },
      false,
    ],
    [
      'of an app that nothing was verified of',
      { pi_app_verdict: 'PLAY_RECOGNIZED' },
      { rejected: true },
      false,
    ],
    ['of a licence', { pi_licensing: 'LICENSED' }, { pi_licensing: 'UNLICENSED' }, true],
    [
      'of a better device',
      { pi_device_verdict: ['MEETS_STRONG_INTEGRITY'] },
      { pi_device: ['MEETS_BASIC_INTEGRITY'] },
      true,
    ],
    [
      'of a worse device',
      { pi_device_verdict: ['MEETS_BASIC_INTEGRITY'] },
      { pi_device: ['MEETS_STRONG_INTEGRITY'] },
      false,
    ],
    [
      'of a device that Google was unsure of',
      { pi_device_verdict: ['MEETS_BASIC_INTEGRITY'] },
      { pi_device: [] },
      false,
    ],
    [
      'of values of other types',
      { pi_device_verdict: 'x', pi_app_verdict: 3 },
      { pi_device: ['MEETS_BASIC_INTEGRITY'], pi_app: 'UNRECOGNIZED_VERSION' },
      false,
    ],
  ]
  it.each(claims)('%s', (_, tamper, attestation, contradicts) => {
    expect(contradictsVerified(signalsOf({ tamper }), { attestation })).toBe(contradicts)
    expect(contradictsVerified(signalsOf({ tamper }), {})).toBe(false)
  })
})
