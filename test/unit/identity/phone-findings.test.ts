// What the phone of an install adds to the decision of an event.
import { describe, expect, it } from 'vitest'
import type { PhoneLink } from '#shared/core/identity/decide-link.ts'
import { type PhoneFacts, reinstalledMs } from '#shared/core/identity/phone-findings.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import type { Reason } from '#shared/core/scoring/score.ts'
import { decideRisk, noRiskFeatures, type RiskEvent } from '#shared/core/velocity/risk.ts'
import { makeEvents } from '../../support/telemetry/accepted-events.ts'

const linkedAtMs = Date.UTC(2026, 8, 1)
const link: PhoneLink = {
  tenantId: 'acme',
  deviceId: 'second',
  phoneId: 'phn_1',
  kind: 'linked',
  possible: null,
  confidence: 0.995,
  identifiersShared: false,
  doubtful: [],
  fixed: null,
  isCompared: true,
  installs: ['first'],
  parametersVersion: 0,
  streamOffset: 9,
  receivedAtMs: linkedAtMs,
}
const [event] = makeEvents([{ tenantId: 'acme', deviceId: 'second', receivedAtMs: linkedAtMs }])
const decide = (
  facts: Partial<PhoneFacts>,
  {
    policy = defaultPolicy,
    ...changed
  }: Partial<RiskEvent> & { policy?: typeof defaultPolicy } = {},
) =>
  decideRisk({ ...event!, ...changed }, policy, {
    ...noRiskFeatures,
    phone: { link, decided: null, hasDeniedInstall: false, otherPhone: [], ...facts },
  })
const codesOf = ({ reasons }: { reasons: readonly Reason[] }) => reasons.map(({ code }) => code)
const sumOf = ({ reasons }: { reasons: readonly Reason[] }) =>
  reasons.reduce((sum, { weight }) => sum + weight, 0)

describe('a linked install', () => {
  it('is a reinstall for a day, which weighs nothing', () => {
    const first = decide({})
    expect(codesOf(first)).toEqual(['REINSTALLED'])
    expect(first).toMatchObject({ riskScore: 0, action: 'ALLOW' })
    expect(first.reasons[0]!.evidence).toEqual({
      phone_id: 'phn_1',
      confidence: 0.995,
      earlier_installs: 1,
    })
    const lastMs = linkedAtMs + reinstalledMs - 1
    expect(codesOf(decide({}, { received_at: lastMs }))).toEqual(['REINSTALLED'])
    expect(codesOf(decide({}, { received_at: lastMs + 1 }))).toEqual([])
  })

  it('of a denied phone is for review, and blocked only where the policy says so', () => {
    const denied = decide({ hasDeniedInstall: true })
    expect(denied).toMatchObject({
      action: 'REVIEW',
      riskScore: defaultPolicy.thresholds.review,
    })
    expect(sumOf(denied)).toBe(denied.riskScore)
    // The phone alone: the other install may be erased.
    expect(denied.reasons[0]).toMatchObject({ code: 'DENY_LISTED_PHONE' })
    expect(denied.reasons[0]!.evidence).toEqual({ phone_id: 'phn_1', confidence: 0.995 })
    const blocking = { ...defaultPolicy, correlationAloneMax: 'BLOCK' as const }
    const blocked = decide({ hasDeniedInstall: true }, { policy: blocking })
    const { block } = defaultPolicy.thresholds
    expect(blocked).toMatchObject({ action: 'BLOCK', riskScore: block })
    expect(sumOf(blocked)).toBe(block)
  })

  it('of a denied phone keeps a higher decision', () => {
    const reasons: Reason[] = [{ code: 'ROOTED', weight: 95, evidence: {} }]
    const edge = { rasp_score: 95, rasp_action: 'BLOCK' as const, reasons }
    const risk = decide({ hasDeniedInstall: true }, edge)
    const { riskScore } = decide({}, edge)
    expect(riskScore).toBeGreaterThanOrEqual(95)
    expect(risk).toMatchObject({ action: 'BLOCK', riskScore })
    expect(sumOf(risk)).toBe(riskScore)
    expect(codesOf(risk)).toContain('DENY_LISTED_PHONE')
  })

  it('that is on the allow list stays allowed', () => {
    const reasons: Reason[] = [{ code: 'ALLOW_LISTED', weight: 0, evidence: {} }]
    expect(decide({ hasDeniedInstall: true }, { reasons })).toMatchObject({
      action: 'ALLOW',
      riskScore: 0,
    })
  })
})

describe('other installs', () => {
  it('are no reinstalls', () => {
    for (const kind of ['first', 'possible'] as const) {
      expect(codesOf(decide({ link: { ...link, kind } }))).toEqual([])
    }
  })

  it('with the identifiers of several phones have a flag that weighs nothing', () => {
    const risk = decide({ link: { ...link, kind: 'first', identifiersShared: true } })
    expect(risk).toMatchObject({ action: 'ALLOW', riskScore: 0 })
    expect(codesOf(risk)).toEqual(['IDENTIFIERS_SHARED'])
  })
})
