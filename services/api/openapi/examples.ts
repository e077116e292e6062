/**
 * Examples for the OpenAPI document: one device's story, scored and raised by the same code as a
 * real one, so that what the page shows is what the service does.
 */

import type { Actor } from '#shared/core/alerts/actor-schema.ts'
import { toAlert, unchanged } from '#shared/core/alerts/alert.ts'
import type { Alert, AlertDetail } from '#shared/core/alerts/alert-schema.ts'
import { decideAlert, toAlertRow } from '#shared/core/alerts/decide-alert.ts'
import { toEventId } from '#shared/core/base/ids.ts'
import { toPhoneId } from '#shared/core/identity/phone-id.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { toPolicyHash } from '#shared/core/policies/policy.ts'
import type { ReconciliationView } from '#shared/core/reconciliation/reconciliation-api.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { type SignalList, toSignalList } from '#shared/core/signals/signal-list.ts'
import { correlate, countKey, findVelocity } from '#shared/core/velocity/correlation.ts'

const connectionExample = {
  country: 'DE',
  asn: 64500,
  organization: 'Example Hosting Ltd',
  network: '203.0.113.0/24',
  kinds: ['hosting', 'vpn'],
}

export const submissionExample = {
  tenant_id: 'demo',
  device_id: '4f6c1d8e-51c5-4d8b-9a57-0c2b4f1a7e33',
  session_id: 'b1946ac9-2f0e-4c55-8d0a-6f1f0d7f9c21',
  user_id: 'customer-1029',
  sdk_meta: { sdk_version: '3.2.0', platform: 'android', batch_type: 'session_start' },
  scorer: { rasp_score: 40, rasp_action: 'REVIEW', rasp_flags: ['ROOTED'] },
  signals: {
    root: { su_binary: true },
    emulator: {},
    debugger: {},
    tamper: {},
    ecosystem: {},
    network: { vpn_active: true },
  },
}

const phoneId = toPhoneId(submissionExample.tenant_id, 'e2a90d5b-7c1f-4b8e-8f1d-6a1f55c1d0aa')
const devicePhoneExample = { phone_id: phoneId, confidence: 0.9997, installs: 2 }

const startedAt = '2026-03-01T09:30:00.123Z'
const eventId = toEventId(Buffer.from(JSON.stringify(submissionExample)))
const scored = compilePolicy(defaultPolicy)(submissionExample.signals, {
  sdkVersion: submissionExample.sdk_meta.sdk_version,
  platform: submissionExample.sdk_meta.platform,
  receivedAtMs: Date.parse(startedAt),
})
const flags = scored.reasons.map((reason) => reason.code)
const sessionsInFiveMinutes = {
  key: countKey({ metric: 'sessions_per_device', windowSeconds: 300 }),
  count: 31,
}

export const ingestResultExample = {
  status: 'accepted',
  rasp_score: scored.score,
  rasp_action: scored.action,
  event_id: eventId,
  flags,
}

export const verdictKeySetExample = {
  keys: [
    {
      kty: 'EC',
      crv: 'P-256',
      x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
      y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
      kid: 'oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U',
      use: 'sig',
      alg: 'ES256',
    },
  ],
}

export const submissionBatchExample = {
  tenant_id: submissionExample.tenant_id,
  events: [submissionExample, { ...submissionExample, session_id: '..' }],
}

export const batchResultExample = {
  accepted: 1,
  invalid: 1,
  events: [
    ingestResultExample,
    {
      status: 'invalid',
      code: 'invalid_body',
      detail: 'The body is not a valid telemetry submission.',
      errors: [{ path: '$.session_id', message: 'must not be . or .., which no URL can name' }],
    },
  ],
}

export const alertExample: Alert = toAlertExample()

const reviewedAt = '2026-03-01T10:12:44.500Z'
const analyst: Actor = { kind: 'operator', id: 'opr_8Tz1bXo0Q1m8pC0nY2vJ4w' }

export const alertDetailExample: AlertDetail = {
  ...alertExample,
  disposition: 'CONFIRMED',
  updated_at: reviewedAt,
  assignee: analyst,
  details: {
    risk_percentile: 99.2,
    history: [
      {
        at: reviewedAt,
        by: { kind: 'api_key', id: 'case-tool' },
        from: 'OPEN',
        to: 'CONFIRMED',
        note: 'chargeback',
      },
    ],
    assignments: [{ at: '2026-03-01T09:58:03.120Z', by: analyst, from: null, to: analyst }],
    notes: [{ at: '2026-03-01T10:02:30.004Z', by: analyst, note: 'Asked the customer.' }],
  },
}

function toAlertExample(): Alert {
  const counts = new Map([[sessionsInFiveMinutes.key, sessionsInFiveMinutes.count]])
  const event = {
    event_id: eventId,
    tenant_id: submissionExample.tenant_id,
    received_at: Date.parse(startedAt),
    rasp_score: scored.score,
    rasp_action: scored.action,
    reasons: scored.reasons,
    policy_version: 1,
    policy_hash: toPolicyHash(defaultPolicy),
    epoch: 1,
    streamOffset: 4_096,
    body: submissionExample,
    connection: { ...connectionExample, address_hash: '' },
  }
  const findings = findVelocity(defaultPolicy.velocity, counts)
  const candidate = decideAlert(event, correlate(scored, findings, defaultPolicy))
  if (candidate === null) throw new Error('the example must be one that raises an alert')
  const createdAt = new Date(Date.parse(startedAt) + 164)
  return toAlert({ ...toAlertRow(candidate, { seq: 1029, createdAt }), ...unchanged })
}

export const deviceExample = {
  device_id: submissionExample.device_id,
  first_seen_at: '2026-02-11T18:04:12.004Z',
  last_seen_at: startedAt,
  peak_rasp_score: scored.score,
  risk_score: alertExample.decision.risk_score,
  risk_percentile: 99.2,
  platform: submissionExample.sdk_meta.platform,
  sdk_version: submissionExample.sdk_meta.sdk_version,
  connection: connectionExample,
  install: {
    provider: 'key_attestation',
    verdict: 'verified',
    level: 'hardware',
    registered_at: '2026-03-02T07:30:00.512Z',
    expires_at: '2026-04-01T07:30:00.512Z',
  },
  phone: devicePhoneExample,
  users_seen_on: ['customer-1029'],
  users_cursor: null,
  sessions: [
    {
      session_id: submissionExample.session_id,
      rasp_action: scored.action,
      started_at: startedAt,
      last_seen_at: startedAt,
      rasp_score: scored.score,
      flags,
      risk_score: alertExample.decision.risk_score,
      action: alertExample.decision.action,
      risk_flags: alertExample.flags,
      platform: submissionExample.sdk_meta.platform,
      sdk_version: submissionExample.sdk_meta.sdk_version,
      connection: connectionExample,
    },
  ],
  sessions_total: 31,
  sessions_cursor: 'WyJDdXJzb3JzQXJlT3BhcXVlIl0',
}

export const userExample = {
  user_id: 'customer-1029',
  first_seen_at: '2026-02-11T18:04:12.004Z',
  last_seen_at: startedAt,
  peak_rasp_score: scored.score,
  risk_score: alertExample.decision.risk_score,
  devices: [
    {
      device_id: submissionExample.device_id,
      first_seen_at: '2026-02-11T18:04:12.004Z',
      last_seen_at: startedAt,
      peak_rasp_score: scored.score,
      risk_score: alertExample.decision.risk_score,
      phone: devicePhoneExample,
    },
  ],
  devices_total: 1,
  devices_cursor: null,
}

export const eventExample = {
  event_id: eventId,
  tenant_id: submissionExample.tenant_id,
  device_id: submissionExample.device_id,
  session_id: submissionExample.session_id,
  user_id: submissionExample.user_id,
  sdk_meta: submissionExample.sdk_meta,
  connection: connectionExample,
  phone: devicePhoneExample,
  received_at: startedAt,
  rasp_score: scored.score,
  rasp_action: scored.action,
  risk_score: alertExample.decision.risk_score,
  action: alertExample.decision.action,
  flags: alertExample.flags,
  reasons: alertExample.reasons,
  policy_version: 1,
}

export const phoneExample = {
  phone_id: phoneId,
  first_seen_at: '2026-01-07T11:40:51.310Z',
  last_seen_at: startedAt,
  risk_score: alertExample.decision.risk_score,
  installs: [
    {
      device_id: submissionExample.device_id,
      link: 'linked',
      confidence: 0.9997,
      evidence: [
        { field: 'identifier keychain_id', level: 1, weight: 13.82, holders: 1 },
        { field: 'traits', level: 2, weight: 6.21, holders: 3 },
        { field: 'user', level: 0, weight: -1.2, holders: null },
      ],
      decided_phone_id: phoneId,
      possible_phone_id: null,
      possible_confidence: null,
      identifiers_shared: false,
      first_seen_at: '2026-02-11T18:04:12.004Z',
      last_seen_at: startedAt,
      risk_score: alertExample.decision.risk_score,
    },
    {
      device_id: 'e2a90d5b-7c1f-4b8e-8f1d-6a1f55c1d0aa',
      link: 'first',
      confidence: 1,
      evidence: [],
      decided_phone_id: phoneId,
      possible_phone_id: null,
      possible_confidence: null,
      identifiers_shared: false,
      first_seen_at: '2026-01-07T11:40:51.310Z',
      last_seen_at: '2026-02-10T20:15:00.940Z',
      risk_score: 35,
    },
  ],
  installs_total: 2,
  users: [
    {
      user_id: 'customer-1029',
      first_seen_at: '2026-02-11T18:04:12.004Z',
      last_seen_at: startedAt,
      installs: 1,
    },
  ],
  users_total: 1,
  alerts: [alertExample],
  alerts_total: 1,
}

export const reconciliationExample: ReconciliationView = {
  from: '2026-03-01T09:00:00.000Z',
  to: '2026-03-01T10:00:00.000Z',
  as_of: '2026-03-01T09:41:12.804Z',
  agrees: false,
  data: [
    {
      hour: '2026-03-01T09:00:00.000Z',
      accepted: 12_840,
      stored: 12_843,
      repeats: 31,
      refused: 0,
      erased: 0,
      rows: 12_811,
      decided: 12_843,
      alerts_due: 27,
      alerts: 27,
      deliveries: 27,
      attempted: 27,
      delivered: 26,
      in_flight: 0,
      expired: false,
      differences: [{ stage: 'rows', kind: 'missing', count: 1, ids: [eventId] }],
    },
  ],
}

export const signalListExample: SignalList = toSignalListExample()

/** The whole list would be most of the document. */
function toSignalListExample(): SignalList {
  const shown = ['root.su_binary', 'root.verified_boot_state', 'network.vpn_active']
  const policyHash = toPolicyHash(defaultPolicy)
  const list = toSignalList({ policy: defaultPolicy, version: 1, policyHash }, 0)
  const excerpt = list.categories
    .map((one) => ({
      ...one,
      signals: one.signals.filter((entry) => shown.includes(entry.signal)),
    }))
    .filter((one) => one.signals.length > 0)
  const named = new Set(excerpt.flatMap((one) => one.signals.map((entry) => entry.flag)))
  return {
    policy: list.policy,
    categories: excerpt,
    flags: Object.fromEntries(Object.entries(list.flags).filter(([flag]) => named.has(flag))),
  }
}

export const addedLabelExample = {
  label_id: 'lbl_Vn3mX0o8Qm2pC1nY5vJ7wA',
  outcome: 'fraud',
  occurred_at: startedAt,
  covered_days: 30,
}

export const newLabelExample = {
  subject: { device_id: submissionExample.device_id },
  label: 'chargeback',
  occurred_at: '2026-03-01',
  amount: '129.90',
  currency: 'EUR',
  external_id: 'cb-2026-00017',
}

export const labelCodeExample = { code: 'mule_account', means: 'fraud', is_declared: true }

export const labelExample = {
  label_id: addedLabelExample.label_id,
  subject: { device_id: submissionExample.device_id },
  label: 'chargeback',
  outcome: 'fraud',
  is_latest: true,
  occurred_at: startedAt,
  covered_days: 30,
  amount: '129.90',
  currency: 'EUR',
  external_id: 'cb-2026-00017',
  note: null,
  created_at: '2026-04-14T08:00:00.000Z',
  actor: { kind: 'api_key', id: 'case-tool' },
}

export const newListEntryExample = {
  list: 'deny',
  kind: 'device',
  id: submissionExample.device_id,
  reason: 'chargeback',
}

export const listEntryExample = {
  entry_id: 'lst_5kZr0b2NqYw8Jc1VtX9aQg',
  list: 'deny',
  kind: 'device',
  id: submissionExample.device_id,
  reason: 'chargeback',
  expires_at: '2027-01-01T00:00:00.000Z',
  expired: false,
  created_at: startedAt,
}
