// The points of what the order tells: by the policy's weights, within the cap of the category, and
// never where the policy does not weigh it.
import { describe, expect, it } from 'vitest'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import { presets } from '#shared/core/policies/presets/presets.ts'
import { sharesRiskFeatures } from '#shared/core/policies/shadow.ts'
import {
  findAttestation,
  listWeighedFacts,
  noOrderFacts,
  type OrderFacts,
} from '#shared/core/velocity/attestation-findings.ts'
import { decideRisk, noRiskFeatures } from '#shared/core/velocity/risk.ts'
import { withServerWeights } from '../../support/scoring/server-weights.ts'
import { makeEvents } from '../../support/telemetry/accepted-events.ts'

const atMs = Date.UTC(2026, 5, 1)
const facts: OrderFacts = {
  sharedKey: { kind: 'remote_issuer', count: 2, phones: ['phn_other'] },
  reusedCounter: { counter: 4, highest: 6 },
  replay: { firstAtMs: atMs - 3_600_000, atMs, networkChanged: false },
  otherPhone: null,
}
const policy = withServerWeights(defaultPolicy, {
  cap: 80,
  signals: { shared_key: 60, counter_reused: 10, replayed: 25 },
})
/** As documents were before the service had signals of its own. */
const { serverCategories: _, ...older } = defaultPolicy
const context = { sdkVersion: '4.2.0', platform: 'android', receivedAtMs: atMs }
const find = (of: Policy, reasons: Parameters<typeof findAttestation>[2]['reasons'] = []) =>
  findAttestation(facts, of, { reasons, context })
const weights = (found: ReturnType<typeof find>) => found.map(({ code, weight }) => [code, weight])

describe('what the order tells', () => {
  it('brings the points of the policy, heaviest first, with its evidence', () => {
    const roomy = withServerWeights(defaultPolicy, {
      cap: 100,
      signals: { shared_key: 60, counter_reused: 10, replayed: 25 },
    })
    expect(find(roomy)).toEqual([
      {
        code: 'ATTESTATION_KEY_SHARED',
        weight: 60,
        evidence: {
          metric: 'phones_per_issuer',
          count: 2,
          threshold: 1,
          window: 'all',
          phones: ['phn_other'],
          signal: 'attestation.shared_key',
        },
      },
      {
        code: 'REPLAYED',
        weight: 25,
        evidence: {
          metric: 'seconds_after_first_copy',
          count: 3_600,
          threshold: 600,
          window: '30d',
          replayed_at: '2026-06-01T00:00:00.000Z',
          signal: 'attestation.replayed',
        },
      },
      {
        code: 'COUNTER_REUSED',
        weight: 10,
        evidence: {
          metric: 'counter_before',
          count: 6,
          threshold: 3,
          window: '30d',
          signal: 'attestation.counter_reused',
        },
      },
    ])
  })

  it.each([
    [
      'late and from another network',
      3_600_500,
      {
        metric: 'seconds_after_first_copy',
        count: 3_600,
        threshold: 600,
        network_changed: true,
      },
    ],
    [
      'soon and from another network',
      2_500,
      {
        metric: 'networks_of_event',
        count: 2,
        threshold: 1,
        network_changed: true,
        seconds_after_first_copy: 2,
      },
    ],
  ])('tells of a copy that came %s by what and after how long', (_, afterMs, expected) => {
    const replay = { firstAtMs: atMs - afterMs, atMs, networkChanged: true }
    const [found] = findAttestation({ ...noOrderFacts, replay }, policy, { reasons: [], context })
    expect(found).toEqual({
      code: 'REPLAYED',
      weight: 25,
      evidence: {
        window: '30d',
        replayed_at: '2026-06-01T00:00:00.000Z',
        signal: 'attestation.replayed',
        ...expected,
      },
    })
  })

  it('tells what differs of another phone that sends the device id, above NEW_DEVICE', () => {
    const other = { ...noOrderFacts, otherPhone: ['model', 'media_drm_id'] }
    for (const preset of Object.values<Policy>(presets)) {
      const [found] = findAttestation(other, preset, { reasons: [], context })
      expect(found).toMatchObject({ code: 'DEVICE_ID_SHARED', evidence: { count: 2 } })
      expect(found!.evidence.differs).toEqual(['model', 'media_drm_id'])
      const newDevice = preset.velocity.find(({ metric }) => metric === 'new_device_of_user')!
      expect(found!.weight).toBeGreaterThan(newDevice.weight)
      expect(found!.weight).toBeLessThan(preset.thresholds.review)
    }
  })

  it('stays within the cap, of which the edge may have used some', () => {
    expect(weights(find(policy))).toEqual([
      ['ATTESTATION_KEY_SHARED', 60],
      ['REPLAYED', 20],
      ['COUNTER_REUSED', 0],
    ])
    expect(find(policy)[1]?.evidence).toMatchObject({ capped: true })
    const edge = [
      { code: 'ATTESTATION_FAILED', weight: 30, evidence: { signals: ['attestation.rejected'] } },
      { code: 'ROOTED', weight: 50, evidence: { signals: ['root.su_binary'] } },
    ]
    expect(weights(find(policy, edge))[0]).toEqual(['ATTESTATION_KEY_SHARED', 50])
  })

  it('brings nothing without weights, as under every older policy', () => {
    expect(find(older)).toEqual([])
    expect(listWeighedFacts(older)).toEqual({
      sharedKey: false,
      reusedCounter: false,
      replay: false,
      otherPhone: false,
    })
    const odd = withServerWeights(older, {
      cap: 80,
      signals: { replayed: { whenFalse: 30 } },
    })
    expect(find(odd)).toEqual([])
    expect(findAttestation(noOrderFacts, policy, { reasons: [], context })).toEqual([])
  })

  it('brings nothing where a suppression silences it', () => {
    const silenced = {
      ...policy,
      suppressions: [
        {
          signals: ['attestation.replayed'],
          sdkVersions: ['4.2.*'],
          expiresAt: null,
          reason: 'a release that sends everything twice',
        },
      ],
    }
    expect(weights(find(silenced)).map(([code]) => code)).toEqual([
      'ATTESTATION_KEY_SHARED',
      'COUNTER_REUSED',
    ])
  })

  it('raises the risk score, to REVIEW at most by itself, and adds up', () => {
    const [event] = makeEvents([{ signals: {}, more: { scorer: noScore } }])
    const heavy = withServerWeights(defaultPolicy, { cap: 100, signals: { shared_key: 100 } })
    const risk = decideRisk(event!, heavy, { ...noRiskFeatures, order: facts })
    const { review, block } = heavy.thresholds
    expect(risk).toMatchObject({ riskScore: block - 1, action: 'REVIEW' })
    expect(risk.riskScore).toBeGreaterThanOrEqual(review)
    expect(risk.reasons.reduce((sum, one) => sum + one.weight, 0)).toBe(risk.riskScore)
    expect(risk.reasons.map(({ code }) => code)).toEqual(['ATTESTATION_KEY_SHARED'])
  })

  it('is read again for a shadow policy that weighs more of it', () => {
    expect(sharesRiskFeatures(older, policy)).toBe(false)
    expect(sharesRiskFeatures(policy, older)).toBe(true)
    expect(sharesRiskFeatures(policy, policy)).toBe(true)
  })
})

const noScore = { rasp_score: 0, rasp_action: '', rasp_flags: [] }
