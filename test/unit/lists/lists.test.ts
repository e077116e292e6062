/** List decisions: which entry decides, what it does to a score and to a risk, under any policy. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decideAlert } from '#shared/core/alerts/decide-alert.ts'
import type { IdKind, ListEntry } from '#shared/core/lists/list-entry.ts'
import {
  applyListReasons,
  findListDecision,
  findListReason,
  type ListSource,
  toListReasons,
} from '#shared/core/lists/lists.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import { compileShadow, decideShadow } from '#shared/core/policies/shadow.ts'
import { toAction } from '#shared/core/scoring/score.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { decideRisk, noRiskFeatures, type RiskFeatures } from '#shared/core/velocity/risk.ts'

const nowMs = 1_000_000

const entryOf = (more: Partial<ListEntry> = {}): ListEntry => ({
  entryId: 'lst_one',
  list: 'deny',
  kind: 'device',
  reason: 'chargeback',
  expiresAtMs: null,
  ...more,
})

/** The lists of a tenant, each entry with the id that it is for. */
const listsOf = (...rows: (readonly [string, ListEntry])[]): ListSource => ({
  find: (kind, id) =>
    rows.filter(([of, entry]) => of === id && entry.kind === kind).map(([, entry]) => entry),
  findOfConnection: () => [],
})

const decide = (lists: ListSource, ids: Record<string, string> = {}) =>
  findListDecision(lists, { device_id: 'phone', ...ids }, nowMs).decides

describe('the entry that decides', () => {
  it('names the device, the user or the account of the event, and no other kind of the same id', () => {
    const device = entryOf()
    const user = entryOf({ kind: 'user' })
    expect(decide(listsOf(['phone', device]))).toBe(device)
    expect(decide(listsOf(['other', device]))).toBeNull()
    expect(decide(listsOf(['phone', user]))).toBeNull()
    expect(decide(listsOf(['anna', user]), { user_id: 'anna' })).toBe(user)
    expect(decide(listsOf(['anna', user]), { user_id: 'ben', account_id: 'anna' })).toBe(user)
    expect(decide(listsOf(['anna', device]), { user_id: 'anna' })).toBeNull()
  })

  it('is in force until the instant of its expiry', () => {
    const until = (expiresAtMs: number) => decide(listsOf(['phone', entryOf({ expiresAtMs })]))
    expect(until(nowMs + 1)).not.toBeNull()
    expect(until(nowMs)).toBeNull()
    expect(until(nowMs - 1)).toBeNull()
  })

  it('is one of the deny list, if any is in force', () => {
    const rows = fc.array(
      fc.record({
        list: fc.constantFrom('allow' as const, 'deny' as const),
        kind: fc.constantFrom<IdKind>('device', 'user'),
        expiresAtMs: fc.constantFrom(null, nowMs - 1, nowMs, nowMs + 1),
      }),
      { maxLength: 6 },
    )
    fc.assert(
      fc.property(rows, (some) => {
        const lists = listsOf(...some.map((one) => ['same', entryOf(one)] as const))
        const found = decide(lists, { device_id: 'same', user_id: 'same' })
        const inForce = some.filter((one) => one.expiresAtMs === null || one.expiresAtMs > nowMs)
        const expected = inForce.some(({ list }) => list === 'deny') ? 'deny' : inForce[0]?.list
        expect(found?.list).toBe(expected)
      }),
    )
  })
})

const signals = (risky: boolean) => ({
  root: { su_binary: risky },
  emulator: {},
  debugger: { frida_detected: risky },
  tamper: {},
  ecosystem: {},
  network: {},
})

/** An event as the edge stores it under a list decision. */
function makeEvent(risky: boolean, policy: Policy, entry: ListEntry | null): AcceptedEvent {
  const body = {
    tenant_id: 'acme',
    device_id: 'phone',
    session_id: 'session',
    sdk_meta: { sdk_version: '1', platform: 'android', batch_type: 'start' },
    scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
    signals: signals(risky),
  }
  const context = { sdkVersion: '1', platform: 'android', receivedAtMs: nowMs }
  const scored = compilePolicy(policy)(body.signals, context)
  const { score, action, reasons } = applyListReasons(
    scored,
    toListReasons({ decides: entry, silences: null }),
  )
  return {
    event_id: 'evt_1',
    tenant_id: 'acme',
    received_at: nowMs,
    rasp_score: score,
    rasp_action: action,
    reasons,
    policy_version: 1,
    policy_hash: 'p',
    epoch: 1,
    streamOffset: 1,
    body: body as AcceptedEvent['body'],
  }
}

const sum = (reasons: readonly { weight: number }[]) =>
  reasons.reduce((total, { weight }) => total + weight, 0)

const features: RiskFeatures = {
  ...noRiskFeatures,
  counts: new Map([
    ['sessions_per_device:300', 1_000],
    ['users_per_device:86400', 50],
  ]),
}
const reportOnly: Policy = { ...defaultPolicy, thresholds: { review: 101, block: 101 } }
const strict: Policy = { ...defaultPolicy, thresholds: { review: 1, block: 2 } }

describe.each([
  ['by default', defaultPolicy],
  ['that never blocks', reportOnly],
  ['that blocks nearly everything', strict],
])('under a policy %s', (_, policy) => {
  it.each([true, false])('a denied event is BLOCK with 100 points, risky signals: %s', (risky) => {
    const event = makeEvent(risky, policy, entryOf())
    expect(event.rasp_action).toBe('BLOCK')
    expect(sum(event.reasons)).toBe(event.rasp_score)
    expect(event.rasp_score).toBe(makeEvent(risky, policy, null).rasp_score)
    const risk = decideRisk(event, policy, features)
    expect(risk).toMatchObject({ action: 'BLOCK', riskScore: 100 })
    expect(sum(risk.reasons)).toBe(100)
    const alert = decideAlert(event, risk)!
    const reason = alert.reasons.find(({ code }) => code === 'DENY_LISTED')!
    const evidence = { entry_id: 'lst_one', kind: 'device', reason: 'chargeback' }
    expect(reason.evidence).toEqual(evidence)
    expect(alert.reasons.map(({ code }) => code)).toContain('HIGH_VELOCITY')
  })

  it.each([true, false])('an allowed event raises no alert, risky signals: %s', (risky) => {
    const event = makeEvent(risky, policy, entryOf({ list: 'allow' }))
    expect(event.rasp_action).toBe('ALLOW')
    expect(sum(event.reasons)).toBe(event.rasp_score)
    const risk = decideRisk(event, policy, features)
    expect(risk).toMatchObject({ action: 'ALLOW', riskScore: 0 })
    expect(sum(risk.reasons)).toBe(0)
    expect(decideAlert(event, risk)).toBeNull()
  })

  it('a shadow policy sees the list decision of the event', () => {
    for (const [list, action, riskScore] of [
      ['deny', 'BLOCK', 100],
      ['allow', 'ALLOW', 0],
    ] as const) {
      const event = makeEvent(true, defaultPolicy, entryOf({ list }))
      const { risk } = decideShadow(event, compileShadow(policy), features)
      expect(risk).toMatchObject({ action, riskScore })
      expect(sum(risk.reasons)).toBe(riskScore)
    }
  })

  it('an event that no list decides is as before', () => {
    const event = makeEvent(true, policy, null)
    expect(findListReason(event.reasons)).toBeUndefined()
    expect(event.rasp_action).toBe(toAction(event.rasp_score, policy.thresholds))
  })
})
