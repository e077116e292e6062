// Server signals the whole way: from the head of an event in the stream, through scorers, to rows,
// alerts, views and explanations; and that a body that carries the same names moves nothing.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Policy, policySchema, toPolicyHash } from '#shared/core/policies/policy.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import type { ServerSignals } from '#shared/core/signals/signal-definition.ts'
import { insertPolicyDocument } from '#shared/io/policies/policy-store.ts'
import { createEventListStore } from '#shared/io/telemetry/event-list-store.ts'
import { createEventStore } from '#shared/io/telemetry/event-store.ts'
import { findEarlierEvents } from '#shared/io/telemetry/session-events-store.ts'
import { createRiskFeatureStore } from '#shared/io/velocity/risk-features.ts'
import { scoreWithCurrentPolicy } from '../../../services/console/alerts/score-with-current-policy.ts'
import { explainEvent, readBody } from '../../../services/console/events/explain-event.ts'
import { setShadowPolicy } from '../../../services/console/policies/manage-shadow.ts'
import { noPhones } from '../../support/identity/no-phones.ts'
import { until } from '../../support/process/until.ts'
import { type EventFacts, makeEvents } from '../../support/telemetry/accepted-events.ts'
import { createScorerRig, type ScorerRig } from '../../support/telemetry/scorer-rig.ts'

const tenantId = 'attested'
const wary: Policy = policySchema.parse({
  ...balancedPolicy,
  name: 'wary',
  serverCategories: { attestation: { cap: 90, signals: { missing: 44, rejected: 80 } } },
})
/** A shadow that scores nothing of what the service sees. */
const { serverCategories: _, ...older } = balancedPolicy
const olderPolicy: Policy = policySchema.parse({ ...older, name: 'older', floors: [] })

const rejected: ServerSignals = {
  attestation: { install_key: true, rejected: true, hardware_backed: true, pi_device: [] },
  connection: { country: 'DE', vpn: true },
}

let rig: ScorerRig
let sent: Record<'missing' | 'rejected' | 'forged' | 'word' | 'bare', EventFacts>

beforeAll(async () => {
  rig = await createScorerRig()
  for (const policy of [wary, olderPolicy]) {
    const document = { hash: toPolicyHash(policy), text: JSON.stringify(policy) }
    await insertPolicyDocument(rig.postgres, document)
  }
  await rig.startScorer()
  await rig.addTenant(tenantId)
  const shadow = await setShadowPolicy(
    { leases: { renewals: rig.postgres, work: rig.postgres } },
    { tenantId, document: olderPolicy, actor: 'test' },
  )
  const firstMs = Date.parse(shadow!.effective_at) + 1
  const of = (deviceId: string, facts: EventFacts): EventFacts => {
    const sessionId = `session of ${deviceId}`
    return { tenantId, deviceId, sessionId, policy: wary, receivedAtMs: firstMs, ...facts }
  }
  sent = {
    missing: of('phone-missing', { serverSignals: { attestation: { missing: true } } }),
    rejected: of('phone-rejected', { serverSignals: rejected }),
    forged: of('phone-forged', {
      signals: { attestation: { rejected: true, missing: true }, connection: { vpn: true } },
      serverSignals: { attestation: { install_key: true, verified: true } },
    }),
    word: of('phone-word', {
      signals: { tamper: { pi_app_verdict: 'UNRECOGNIZED_VERSION', attestation_failed: true } },
      serverSignals: { attestation: { verified: true, pi_app: 'PLAY_RECOGNIZED' } },
    }),
    bare: of('phone-bare', {}),
  }
  await rig.publish(Object.values(sent))
  await rig.drained()
})
afterAll(() => rig?.close())

const toEvent = (name: keyof typeof sent) => makeEvents([sent[name]])[0]!

async function read<Row>(query: string): Promise<Row[]> {
  const result = await rig.clickhouse.query({ query, format: 'JSONEachRow' })
  return result.json<Row>()
}

const readAlerts = async () => {
  const { rows } = await rig.postgres.query<{
    device_id: string
    action: string
    risk_score: number
    reasons: { code: string; weight: number; evidence: { signals?: string[] } }[]
  }>(
    `select device_id, action, risk_score, reasons from alerts
     where tenant_id = $1 order by device_id`,
    [tenantId],
  )
  return rows
}

describe('server signals of an event', () => {
  it('raise alerts that name them, and what the body says of them raises none', async () => {
    const alerts = await readAlerts()
    expect(alerts.map(({ device_id, action }) => [device_id, action])).toEqual([
      ['phone-missing', 'REVIEW'],
      ['phone-rejected', 'BLOCK'],
    ])
    expect(alerts[0]).toMatchObject({
      risk_score: 44,
      reasons: [
        {
          code: 'ATTESTATION_MISSING',
          weight: 44,
          evidence: { signals: ['attestation.missing'] },
        },
      ],
    })
    expect(alerts[1]!.reasons[0]).toMatchObject({
      code: 'ATTESTATION_FAILED',
      evidence: { signals: ['attestation.rejected'] },
    })
  })

  it('lie in columns of their own, apart from what the client found', async () => {
    const rows = await read(
      `select device_id, server_signals, detected_server_signals as seen, detected_signals as found
       from analytics.events where tenant_id = '${tenantId}' order by device_id`,
    )
    expect(rows).toEqual([
      { device_id: 'phone-bare', server_signals: {}, seen: [], found: [] },
      {
        device_id: 'phone-forged',
        server_signals: { attestation: { install_key: true, verified: true } },
        seen: [],
        found: [],
      },
      {
        device_id: 'phone-missing',
        server_signals: { attestation: { missing: true } },
        seen: ['attestation.missing'],
        found: [],
      },
      {
        device_id: 'phone-rejected',
        server_signals: rejected,
        seen: ['attestation.rejected', 'connection.vpn'],
        found: [],
      },
      {
        device_id: 'phone-word',
        server_signals: { attestation: { pi_app: 'PLAY_RECOGNIZED', verified: true } },
        seen: [],
        found: ['tamper.attestation_failed'],
      },
    ])
    const typed = await read(
      `select device_id, server_signals.attestation.pi_device as device,
         server_signals.connection.country as country from analytics.typed_events
       where tenant_id = '${tenantId}' and server_signals.attestation.rejected`,
    )
    expect(typed).toEqual([{ device_id: 'phone-rejected', device: [], country: 'DE' }])
    const detected = await read(
      `select concat(device_id, ' ', signal, ' ', category) as at from analytics.signals
       where tenant_id = '${tenantId}' order by at`,
    )
    expect(detected).toEqual([
      { at: 'phone-missing attestation.missing attestation' },
      { at: 'phone-rejected attestation.rejected attestation' },
      { at: 'phone-rejected connection.vpn connection' },
      { at: 'phone-word tamper.attestation_failed tamper' },
    ])
    const shares = await read(
      `select signal, devices, fleet from analytics.signal_share
       where tenant_id = '${tenantId}' and signal = 'attestation.missing'`,
    )
    expect(shares).toEqual([{ signal: 'attestation.missing', devices: 1, fleet: 5 }])
  })

  it('find events in the list', async () => {
    const options = { nowMs: Date.now, monotonicMs: () => performance.now() }
    const { listEvents } = createEventListStore(rig.clickhouse, options)
    const devicesOf = async (signal: string) => {
      const { events } = await listEvents({ tenantId, filter: { signal }, limit: 10, after: null })
      return events.map(({ deviceId }) => deviceId)
    }
    expect(await devicesOf('attestation.rejected')).toEqual(['phone-rejected'])
    expect(await devicesOf('connection.vpn')).toEqual(['phone-rejected'])
    expect(await devicesOf('tamper.attestation_failed')).toEqual(['phone-word'])
  })

  it('are part of every explanation, which computes what the edge answered', async () => {
    const { findEvent, findDecision } = createEventStore(rig.clickhouse)
    const { loadRiskFeatures } = createRiskFeatureStore(rig.clickhouse, noPhones)
    const deps = { postgres: rig.postgres, findEvent, findDecision, loadRiskFeatures }
    for (const name of Object.keys(sent) as (keyof typeof sent)[]) {
      const { event_id: eventId } = toEvent(name)
      const explained = await explainEvent({ ...deps, wallMs: Date.now }, { eventId, scope: 'all' })
      // The tenant of the test has no version of this document.
      const differences = explained.differences.filter(({ field }) => field !== 'policy_hash')
      expect([name, differences]).toEqual([name, []])
      const seen = explained.steps.signals.filter(({ seen_by: by }) => by === 'server')
      const given = Object.values(sent[name].serverSignals ?? {}).flatMap((own) =>
        Object.keys(own!),
      )
      expect(seen.map(({ signal }) => signal.split('.')[1]).sort()).toEqual(given.sort())
    }
    const { event_id: eventId } = toEvent('word')
    const { steps } = await explainEvent({ ...deps, wallMs: Date.now }, { eventId, scope: 'all' })
    const word = steps.signals.find(({ signal }) => signal === 'tamper.pi_app_verdict')
    expect(word).toMatchObject({
      outcome: 'suppressed',
      suppressed_because: 'The service verified this itself.',
    })
    expect(steps.score).toBe(0)
  })

  it('count in what another policy would have made of it', async () => {
    const { findEvent } = createEventStore(rig.clickhouse)
    const { loadRiskFeatures } = createRiskFeatureStore(rig.clickhouse, noPhones)
    const event = (await findEvent(toEvent('missing').event_id))!
    const stricter = { ...wary, name: 'stricter', thresholds: { review: 10, block: 44 } }
    const verdict = await scoreWithCurrentPolicy(
      { loadRiskFeatures, wallMs: Date.now },
      { event, body: readBody(event) },
      { policy: stricter, version: 2, policyHash: toPolicyHash(stricter) },
    )
    expect(verdict).toMatchObject({ rasp_score: 44, action: 'BLOCK' })
  })

  it('are with the earlier events of a session', async () => {
    const { body } = toEvent('rejected')
    const part = { tenantId, deviceId: body.device_id, sessionId: body.session_id }
    const parts = [{ ...part, beforeStreamOffset: 2 ** 52 }]
    const earlier = await findEarlierEvents(rig.clickhouse, { parts, excludedStreamOffsets: [] })
    expect(earlier.map(({ server_signals: server }) => server)).toEqual([rejected])
  })

  it('are decided by a shadow policy under its own weights', async () => {
    const rows = await until('shadow decisions are stored', async () => {
      const found = await read<{ device_id: string; shadow: number; active: number }>(
        `select device_id, shadow_rasp_score as shadow, active_rasp_score as active
         from shadow_decisions final where tenant_id = '${tenantId}' order by device_id`,
      )
      return found.length === Object.keys(sent).length ? found : null
    })
    expect(rows).toEqual([
      { device_id: 'phone-bare', shadow: 0, active: 0 },
      { device_id: 'phone-forged', shadow: 0, active: 0 },
      { device_id: 'phone-missing', shadow: 0, active: 44 },
      { device_id: 'phone-rejected', shadow: 0, active: 80 },
      // Without server categories the client's word counts.
      { device_id: 'phone-word', shadow: 90, active: 0 },
    ])
  })
})
