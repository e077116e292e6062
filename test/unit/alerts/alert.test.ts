// When an alert is raised, its id, and its public fields.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toAlert, unchanged } from '#shared/core/alerts/alert.ts'
import { toActor, toKeyActor } from '#shared/core/alerts/alert-actors.ts'
import { alertSchema } from '#shared/core/alerts/alert-schema.ts'
import { decideAlert, toAlertRow } from '#shared/core/alerts/decide-alert.ts'
import { toAlertId, toDeliveryId } from '#shared/core/base/ids.ts'
import type { EventConnection } from '#shared/core/network/event-connection.ts'
import type { Action, Reason } from '#shared/core/scoring/score.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { hostingConnection, unknownConnection } from '../../support/telemetry/connections.ts'

const reasons: Reason[] = [
  { code: 'ROOTED', weight: 40, evidence: { signals: ['root.su_binary'] } },
  { code: 'HIGH_VELOCITY', weight: 30, evidence: { count: 31 } },
]

function eventOf(more: { user_id?: string; account_id?: string } = {}): AcceptedEvent {
  return {
    event_id: 'evt_1',
    streamOffset: 1,
    tenant_id: 'acme',
    received_at: 1,
    rasp_score: 40,
    rasp_action: 'REVIEW',
    reasons: reasons.slice(0, 1),
    policy_version: 7,
    policy_hash: 'hash',
    epoch: 1,
    body: {
      tenant_id: 'acme',
      device_id: 'd',
      session_id: 's',
      sdk_meta: { sdk_version: '1', platform: 'ios', batch_type: 'b' },
      scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
      signals: { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} },
      ...more,
    },
  }
}

const risk = (action: Action) => ({ riskScore: 70, action, reasons })

describe('an alert', () => {
  test('is raised for REVIEW and BLOCK only', () => {
    expect(decideAlert(eventOf(), risk('ALLOW'))).toBeNull()
    for (const action of ['REVIEW', 'BLOCK'] as const) {
      expect(decideAlert(eventOf(), risk(action))).toMatchObject({
        tenantId: 'acme',
        deviceId: 'd',
        sessionId: 's',
        userId: null,
        eventId: 'evt_1',
        action,
        riskScore: 70,
        raspScore: 40,
        policyVersion: 7,
      })
    }
  })

  test('names the user, or the account without a user', () => {
    const userOf = (event: AcceptedEvent) => decideAlert(event, risk('BLOCK'))?.userId
    expect(userOf(eventOf({ user_id: 'u', account_id: 'a' }))).toBe('u')
    expect(userOf(eventOf({ account_id: 'a' }))).toBe('a')
  })

  test('has the fields of the interface, and the codes of its reasons as flags', () => {
    const candidate = decideAlert(eventOf({ user_id: 'u' }), risk('REVIEW'))!
    const row = toAlertRow(candidate, { seq: 3, createdAt: new Date(12_345) })
    const alert = toAlert({ ...row, ...unchanged })
    expect(alert).toEqual({
      alert_id: candidate.alertId,
      tenant_id: 'acme',
      event_id: candidate.eventId,
      seq: 3,
      decision: { action: 'REVIEW', severity: 'HIGH', risk_score: 70 },
      rasp_score: 40,
      entity: {
        device: { device_id: 'd' },
        session: { session_id: 's' },
        user: { user_id: 'u' },
        phone: null,
      },
      flags: ['ROOTED', 'HIGH_VELOCITY'],
      reasons,
      disposition: 'OPEN',
      platform: 'ios',
      sdk_version: '1',
      connection: null,
      created_at: '1970-01-01T00:00:12.345Z',
      updated_at: '1970-01-01T00:00:12.345Z',
      assignee: null,
    })
    expect(alertSchema.parse(alert)).toEqual(alert)
    const phone = { phone_id: 'phn_1', phone_confidence: 0.995000004768 }
    const known = toAlert({ ...row, ...phone, ...unchanged })
    expect(known.entity.phone).toEqual({ phone_id: 'phn_1', confidence: 0.995 })
  })

  test('names the app and the phone, in texts that Postgres can store', () => {
    const event = eventOf()
    const sdk_meta = { sdk_version: '4\u0000.2', platform: ' Android/TV', batch_type: 'b' }
    const body = { ...event.body, sdk_meta, app: { version: '12.1' }, device: { model: 'X\ud800' } }
    expect(decideAlert({ ...event, body }, risk('REVIEW'))).toMatchObject({
      platform: 'android',
      sdkVersion: '4.2',
      appVersion: '12.1',
      deviceModel: 'X\ufffd',
    })
    const { sdk_meta: _, ...rest } = body
    const nameless = { ...rest, sdk_meta: { ...sdk_meta, sdk_version: '' }, device: {} }
    expect(decideAlert({ ...event, body: nameless }, risk('REVIEW'))).toMatchObject({
      sdkVersion: null,
      deviceModel: null,
    })
  })

  test('has the connection of its event, without the address', () => {
    const connectionOf = (connection: EventConnection) => {
      const candidate = decideAlert({ ...eventOf(), connection }, risk('REVIEW'))!
      const row = toAlertRow(candidate, { seq: 1, createdAt: new Date(0) })
      const alert = toAlert({ ...row, ...unchanged })
      expect(alertSchema.parse(alert)).toEqual(alert)
      return alert.connection
    }
    expect(connectionOf(hostingConnection)).toEqual({
      country: 'DE',
      asn: 64_500,
      organization: 'Example Hosting Ltd',
      network: '203.0.113.0/24',
      kinds: ['vpn', 'hosting'],
    })
    expect(connectionOf(unknownConnection)).toEqual({
      country: null,
      asn: null,
      organization: null,
      network: '198.51.100.0/24',
      kinds: [],
    })
    const organization = 'A\u0000\ud800'
    expect(connectionOf({ ...hostingConnection, organization })?.organization).toBe('A\ufffd')
    // Postgres would refuse it, and every alert of the batch with it.
    expect(connectionOf({ ...hostingConnection, network: '203.0.113.77/24' })).toBeNull()
  })

  test('shows its assignee and its last change, and no email', () => {
    const candidate = decideAlert(eventOf(), risk('REVIEW'))!
    const row = toAlertRow(candidate, { seq: 1, createdAt: new Date(0) })
    const changed = { changed_at: new Date(5), assignee: 'ada@example.com' }
    expect(toAlert({ ...row, ...changed, assignee_id: 'opr_1' })).toMatchObject({
      updated_at: '1970-01-01T00:00:00.005Z',
      assignee: { kind: 'operator', id: 'opr_1' },
    })
    const stranger = toAlert({ ...row, ...changed, assignee_id: null })
    expect(stranger.assignee).toEqual({ kind: 'operator', id: null })
    expect(JSON.stringify(stranger)).not.toContain('ada@')
  })

  test('tells keys from operators, the token and the service', () => {
    expect(toActor('api-key:case-tool', null)).toEqual({ kind: 'api_key', id: 'case-tool' })
    expect(toActor(toKeyActor('crm'), null)).toEqual({ kind: 'api_key', id: 'crm' })
    expect(toActor('ada@example.com', 'opr_1')).toEqual({ kind: 'operator', id: 'opr_1' })
    expect(toActor('admin', null)).toEqual({ kind: 'operator', id: null })
    expect(toActor('system', null)).toEqual({ kind: 'service', id: null })
  })

  test('has no user field when the user is unknown', () => {
    const candidate = decideAlert(eventOf(), risk('REVIEW'))!
    const row = toAlertRow(candidate, { seq: 1, createdAt: new Date(0) })
    const alert = toAlert({ ...row, ...unchanged })
    expect(Object.keys(alert.entity)).toEqual(['device', 'session', 'phone'])
  })
})

describe('an alert’s id', () => {
  test('is equal for the same tenant, device, session and action, and only for those', () => {
    const part = fc.string({ maxLength: 6 })
    const fact = fc.record({ tenantId: part, deviceId: part, sessionId: part, action: part })
    fc.assert(
      fc.property(fact, fact, (a, b) => {
        const same = JSON.stringify(Object.values(a)) === JSON.stringify(Object.values(b))
        expect(toAlertId({ ...a })).toBe(toAlertId(a))
        expect(toAlertId(a) === toAlertId(b)).toBe(same)
      }),
      { numRuns: 500, verbose: true },
    )
    const split = (deviceId: string, sessionId: string) =>
      toAlertId({ tenantId: 't', deviceId, sessionId, action: 'BLOCK' })
    expect(split('ab', 'c')).not.toBe(split('a', 'bc'))
  })

  test('and the id of its delivery are opaque, have one form, and follow from each other', () => {
    const alertId = toAlertId({ tenantId: 't', deviceId: 'd', sessionId: 's', action: 'BLOCK' })
    expect(alertId).toMatch(/^alr_[A-Za-z0-9_-]{26}$/)
    expect(toDeliveryId(alertId)).toMatch(/^dlv_[A-Za-z0-9_-]{26}$/)
    expect(toDeliveryId(alertId)).toBe(toDeliveryId(alertId))
  })
})
