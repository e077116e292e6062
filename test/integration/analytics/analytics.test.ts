// The views for fraud teams on the real engine, filled by a real scorer: every event once, answers
// equal to the API's, filters that use the keys, and a documented, stable shape.
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toConnection } from '#shared/core/network/connection-columns.ts'
import type { EventConnection } from '#shared/core/network/event-connection.ts'
import type { SignalDefinition } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import { watchedSignals } from '#shared/core/signals/watched-signals.ts'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createReplication, type Replication } from '../../../services/console/jobs/replication.ts'
import { listDocumentedViews } from '../../generate/analytics-page.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { type EventFacts, signalsOf } from '../../support/telemetry/accepted-events.ts'
import {
  hostingConnection,
  plainConnection,
  toColumns,
} from '../../support/telemetry/connections.ts'
import { eraseNow } from '../../support/telemetry/erase-now.ts'
import { createScorerRig, type ScorerRig } from '../../support/telemetry/scorer-rig.ts'

const tenant = 'acme'
const other = 'globex'
const dayMs = 24 * 3_600_000
/** The middle of a month, so that earlier days are in the same month. */
const baseMs = Date.UTC(2026, 4, 20, 12)
let rig: ScorerRig
let replication: Replication

beforeAll(async () => {
  rig = await createScorerRig()
  await rig.addTenant(tenant)
  await rig.addTenant(other)
  await rig.startScorer()
  const { postgres, clickhouse } = rig
  replication = createReplication({
    postgres,
    leases: { renewals: postgres, work: postgres },
    clickhouse,
    log: testLog,
    metrics: createMetrics('console'),
    nowMs: () => performance.now(),
    wallMs: Date.now,
  })
  const mine = events(tenant)
  await rig.publish(...mine.map((one, at) => [one, events(other)[at]!]))
  // The client's retry of the same bytes, a minute later.
  await rig.publish([{ ...mine[0]!, receivedAtMs: mine[0]!.receivedAtMs! + 60_000 }])
  await rig.drained()
  await rig.redeliverAll()
  await rig.drained()
  const { alerts } = await listed()
  const { setDisposition } = createAlertStore(rig.postgres)
  const change = { alertId: alerts[0]!.alert_id, note: null, actor: 'ann' }
  await setDisposition({ ...change, disposition: 'REVIEWED' })
  await setDisposition({ ...change, disposition: 'CONFIRMED', note: "it's a farm\n" })
  await replication.runRound()
})
afterAll(() => rig?.close())

/** Two phones and a tablet; eve moves from one phone to the tablet, bob stays. */
function events(tenantId: string): (EventFacts & { receivedAtMs: number })[] {
  const at = (days: number) => baseMs + days * dayMs
  const vpn = { network: { vpn_active: true, vpn_country: 'true' }, tamper: { odd: true } }
  return [
    { ...phone, sessionId: 's1', userId: 'eve', receivedAtMs: at(-3), signals: vpn, ...home },
    { ...phone, sessionId: 's1', userId: 'eve', receivedAtMs: at(-2), ...away },
    { ...phone, sessionId: 's2', userId: 'bob', receivedAtMs: at(-1), ...review },
    {
      deviceId: 'tablet',
      sessionId: 's3',
      accountId: 'eve',
      receivedAtMs: at(0),
      ...block,
      ...away,
    },
    { deviceId: 'tablet', sessionId: 's3', userId: 'bob', accountId: 'eve', receivedAtMs: at(2) },
    { deviceId: 'quiet', sessionId: 's4', receivedAtMs: at(3) },
  ].map((one) => ({ tenantId, ...one }))
}
const phone = { deviceId: 'phone' }
const home = { connection: plainConnection }
const away = { connection: hostingConnection }
const review = { signals: signalsOf.REVIEW }
const block = { signals: signalsOf.BLOCK }

const listed = (tenantId = tenant) =>
  createAlertStore(rig.postgres).listAlerts({ tenantId, limit: 500, after: null })

async function read<Row>(query: string): Promise<Row[]> {
  const result = await rig.clickhouse.query({ query, format: 'JSONEachRow' })
  return result.json<Row>()
}
const toMs = (text: string) => Date.parse(`${text.replace(' ', 'T')}Z`)

describe('the views', () => {
  it('count every accepted event once, however often it was sent and delivered', async () => {
    const rows = await read<{ tenant_id: string; n: number; ids: number }>(
      `select tenant_id, count() as n, uniqExact(event_id) as ids from analytics.events
       group by tenant_id order by tenant_id`,
    )
    expect(rows).toEqual([
      { tenant_id: tenant, n: 6, ids: 6 },
      { tenant_id: other, n: 6, ids: 6 },
    ])
  })

  it('show devices, sessions and users as the API does', async () => {
    for (const deviceId of ['phone', 'tablet', 'quiet']) {
      const known = await rig.history.findDevice({
        tenantId: tenant,
        deviceId,
        sessionsLimit: 100,
        before: null,
      })
      const where = `tenant_id = '${tenant}' and device_id = '${deviceId}'`
      const [device] = await read<Record<string, unknown>>(
        `select * from analytics.devices where ${where}`,
      )
      expect(device).toMatchObject({
        peak_rasp_score: known?.peakRaspScore,
        risk_score: known?.peakRiskScore,
        users: known?.users,
      })
      expect(toConnection(device as never)).toEqual(known?.connection)
      expect(toMs(String(device?.first_seen_at))).toBe(known?.firstSeenAtMs)
      expect(toMs(String(device?.last_seen_at))).toBe(known?.lastSeenAtMs)
      const sessions = await read<Record<string, string | number>>(
        `select * from analytics.sessions where ${where} order by started_at desc, session_id desc`,
      )
      expect(
        sessions.map((one) => ({
          sessionId: one.session_id,
          raspAction: one.rasp_action,
          raspScore: one.rasp_score,
          flags: one.flags,
          riskScore: one.risk_score,
          action: one.action,
          riskFlags: one.risk_flags,
          platform: one.platform,
          sdkVersion: one.sdk_version,
          appVersion: one.app_version,
          deviceModel: one.device_model,
          connection: toConnection(one as never),
          startedAtMs: toMs(String(one.started_at)),
          lastSeenAtMs: toMs(String(one.last_seen_at)),
        })),
      ).toEqual(known?.sessions)
    }
    expect(
      await read(`select user_id, devices from analytics.users where tenant_id = '${tenant}'
        order by user_id`),
    ).toEqual([
      { user_id: 'bob', devices: 2 },
      { user_id: 'eve', devices: 2 },
    ])
  })

  it('show the highest score of a session before its rows are merged', async () => {
    const own = { tenantId: other, deviceId: 'rising', sessionId: 'r' }
    await rig.clickhouse.command({ query: 'system stop merges device_intelligence.sessions' })
    await rig.publish([{ ...own, nonce: 1 }])
    await rig.drained()
    await rig.publish([{ ...own, ...block }], [{ ...own, nonce: 2 }])
    await rig.drained()
    const rows = await read(
      `select rasp_action, rasp_score > 0 as scored, notEmpty(flags) as flagged
       from analytics.sessions where tenant_id = '${other}' and device_id = 'rising'`,
    )
    await rig.clickhouse.command({ query: 'system start merges device_intelligence.sessions' })
    expect(rows).toEqual([{ rasp_action: 'BLOCK', scored: 1, flagged: 1 }])
  })

  it('show where each event came from, the latest of a device, and of an alert its own', async () => {
    const of = `where tenant_id = '${tenant}' and device_id = 'phone'`
    const columns = `connection_network, connection_country, connection_asn,
      connection_organization, connection_kinds`
    const shown = (connection: EventConnection, columns = toColumns(connection)) => ({
      ...columns,
      connection_asn: columns.connection_asn ?? 0,
      connection_organization: columns.connection_organization ?? '',
    })
    expect(
      await read(`select ${columns}, connection_address_hash, connection_address,
        connection_latitude, connection_longitude
        from analytics.events ${of} order by received_at`),
    ).toEqual([
      {
        ...shown(plainConnection),
        connection_address_hash: plainConnection.address_hash,
        connection_address: '',
        connection_latitude: null,
        connection_longitude: null,
      },
      {
        ...shown(hostingConnection),
        connection_address_hash: hostingConnection.address_hash,
        connection_address: '203.0.113.77',
        connection_latitude: 52.5,
        connection_longitude: 13.5,
      },
      {
        connection_network: '',
        connection_country: '',
        connection_asn: 0,
        connection_organization: '',
        connection_kinds: [],
        connection_address_hash: '',
        connection_address: '',
        connection_latitude: null,
        connection_longitude: null,
      },
    ])
    const at = 'toString(connection_at) as connection_at'
    const awayAt = '2026-05-18 12:00:00.000'
    const latest = { ...shown(hostingConnection), connection_at: awayAt }
    expect(await read(`select ${columns}, ${at} from analytics.devices ${of}`)).toEqual([latest])
    const sessions = `select session_id, ${columns}, ${at} from analytics.sessions ${of}
      order by session_id limit 1`
    expect(await read(sessions)).toEqual([{ session_id: 's1', ...latest }])
    const ofTablet = `where tenant_id = '${tenant}' and device_id = 'tablet'`
    expect(await read(`select distinct ${columns} from analytics.alerts ${ofTablet}`)).toEqual([
      shown(hostingConnection),
    ])
  })

  it('have the full address and its hash in events alone', async () => {
    const views = await listDocumentedViews(rig.clickhouse)
    const having = views.filter(({ columns }) =>
      columns.some(({ name }) => name.startsWith('connection_address')),
    )
    expect(having.map(({ name }) => name)).toEqual(['events'])
    const tables = await read<{ table: string }>(
      `select distinct table from system.columns
       where database = 'device_intelligence' and startsWith(name, 'connection_address')`,
    )
    expect(tables).toEqual([{ table: 'telemetry' }])
  })

  it('show alerts as the API does, with every change of their dispositions', async () => {
    const { alerts, total } = await listed()
    const rows = await read<Record<string, string | number>>(
      `select * from analytics.alerts where tenant_id = '${tenant}' order by seq desc`,
    )
    expect(rows).toHaveLength(total)
    expect(
      rows.map((row) => ({
        tenant_id: row.tenant_id,
        alert_id: row.alert_id,
        event_id: row.event_id,
        seq: row.seq,
        decision: { action: row.action, severity: row.severity, risk_score: row.risk_score },
        rasp_score: row.rasp_score,
        device_id: row.device_id,
        session_id: row.session_id,
        user_id: row.user_id,
        flags: row.flags,
        disposition: row.disposition,
        connection: toConnection(row as never),
        created_at: new Date(toMs(String(row.created_at))).toISOString(),
      })),
    ).toEqual(
      // Of the app and the phone the view of the event tells; of assignees and notes, none.
      alerts.map(({ entity, reasons, updated_at, assignee, platform, sdk_version, ...alert }) => ({
        ...alert,
        device_id: entity.device.device_id,
        session_id: entity.session.session_id,
        user_id: entity.user?.user_id ?? '',
      })),
    )
    expect(rows[0]).toMatchObject({
      disposition: 'CONFIRMED',
      history: [
        { from_disposition: 'OPEN', to_disposition: 'REVIEWED', actor: 'ann', note: '' },
        { from_disposition: 'REVIEWED', to_disposition: 'CONFIRMED', note: "it's a farm\n" },
      ],
    })
    const reasons = await read(
      `select code, weight, evidence from analytics.reasons where tenant_id = '${tenant}'
       order by alert_id, code`,
    )
    const expected = alerts
      .toSorted((a, b) => (a.alert_id < b.alert_id ? -1 : 1))
      .flatMap((alert) => alert.reasons.toSorted((a, b) => (a.code < b.code ? -1 : 1)))
    expect(
      (reasons as { evidence: string }[]).map((one) => ({
        ...one,
        evidence: JSON.parse(one.evidence),
      })),
    ).toEqual(expected)
    const deliveries = await read(
      `select alert_id, state, attempts, device_id from analytics.deliveries
       where tenant_id = '${tenant}' order by alert_id`,
    )
    expect(deliveries).toEqual(
      alerts
        .map((alert) => ({
          alert_id: alert.alert_id,
          state: 'pending',
          attempts: 0,
          device_id: alert.entity.device.device_id,
        }))
        .sort((a, b) => (a.alert_id < b.alert_id ? -1 : 1)),
    )
  })

  it('show which user was on which device at any past date', async () => {
    const asOf = (days: number) => {
      const at = new Date(baseMs + days * dayMs).toISOString().replace('T', ' ').replace('Z', '')
      return read<{ pair: string; last: string }>(
        `select concat(user_id, ' ', device_id) as pair, toString(last_seen_at) as last
         from analytics.user_devices_as_of(as_of = '${at}') where tenant_id = '${tenant}'
         order by pair`,
      )
    }
    const pairs = async (days: number) =>
      (await asOf(days)).map((one) => `${one.pair} ${(toMs(one.last) - baseMs) / dayMs}`)
    expect(await pairs(-4)).toEqual([])
    expect(await pairs(-3)).toEqual(['eve phone -3'])
    expect(await pairs(-1.5)).toEqual(['eve phone -2'])
    expect(await pairs(0)).toEqual(['bob phone -1', 'eve phone -2', 'eve tablet 0'])
    expect(await pairs(1)).toEqual(['bob phone -1', 'eve phone -2', 'eve tablet 0'])
    const now = ['bob phone -1', 'bob tablet 2', 'eve phone -2', 'eve tablet 2']
    expect(await pairs(2)).toEqual(now)
    expect(await pairs(30)).toEqual(now)
  })

  it('have a row for every detected boolean signal, and no other', async () => {
    const rows = await read<{ at: string }>(
      `select concat(device_id, ' ', signal) as at from analytics.signals
       where tenant_id = '${tenant}' order by at`,
    )
    expect(rows.map(({ at }) => at)).toEqual([
      'phone network.vpn_active',
      'phone root.magisk_detected',
      'phone tamper.odd',
      'tablet debugger.frida_detected',
    ])
    const bits = await read<{ event_id: string; detected: string[]; bits: string[] }>(
      `select event_id, detected_signals as detected,
         arrayMap(bit -> bit, bitPositionsToArray(detected_bits)) as bits from telemetry`,
    )
    // The engine's list agrees with the bits for the scorer's flip counts.
    const bitsOf = (found: string[]) =>
      found.flatMap((path) => (watchedSignals.includes(path) ? [watchedSignals.indexOf(path)] : []))
    for (const row of bits) expect(row.bits.map(Number)).toEqual(bitsOf(row.detected).sort())
    const share = await read(
      `select day, signal, devices, fleet, share from analytics.signal_share
       where tenant_id = '${tenant}' and day = '2026-05-17' order by signal`,
    )
    expect(share).toEqual(
      ['network.vpn_active', 'tamper.odd'].map((signal) => ({
        day: '2026-05-17',
        signal,
        devices: 1,
        fleet: 1,
        share: 1,
      })),
    )
  })

  it('have one spelling of a platform, and what was sent of app and phone', async () => {
    const spelt = ['Android', 'ANDROID 14', 'iOS', 'iPhone OS', ' ipados ', 'Web', 'android']
    await rig.publish(
      spelt.map((platform, at) => ({
        tenantId: other,
        deviceId: `spelt-${at}`,
        more: {
          sdk_meta: { sdk_version: '4.2.0', platform, batch_type: 'launch' },
          app: { version: '7.1' },
          device: { os_version: '14', brand: 'ACME', model: at === 0 ? 7 : 'One' },
        },
        signals: { root: { su_binary: true } },
      })),
    )
    await rig.drained()
    const where = `tenant_id = '${other}' and startsWith(device_id, 'spelt-')`
    const names = ['android', 'android', 'ios', 'ios', 'ios', 'web', 'android']
    for (const view of ['events', 'typed_events', 'signals']) {
      const rows = await read<Record<string, string>>(
        `select platform, app_version, os_version, device_brand, device_model
         from analytics.${view} where ${where} order by device_id`,
      )
      expect([view, rows]).toEqual([
        view,
        names.map((platform, at) => ({
          platform,
          app_version: '7.1',
          os_version: '14',
          device_brand: 'ACME',
          device_model: at === 0 ? '' : 'One',
        })),
      ])
    }
    const sent = await read<{ sent: string }>(
      `select platform_sent as sent from analytics.events where ${where} order by device_id`,
    )
    expect(sent.map((row) => row.sent)).toEqual(spelt)
  })

  it('have a typed column for every signal, which needs no cast', async () => {
    const signals = {
      root: { su_binary: true, magisk_detected: null },
      debugger: { tracer_pid: 42 },
      ecosystem: { patch_age_days: 3.5 },
      network: { ip_country: 'DE' },
      tamper: { app_attest_valid: false, pi_device_verdict: ['MEETS_BASIC_INTEGRITY', 'OTHER'] },
    }
    await rig.publish([{ tenantId: other, deviceId: 'typed', signals }])
    await rig.drained()
    const where = `tenant_id = '${other}' and device_id = 'typed'`
    const [row] = await read<Record<string, unknown>>(
      `select * from analytics.typed_events where ${where}`,
    )
    const values = Object.entries(row!).filter(([name]) => name.startsWith('signals.'))
    for (const [category, names] of Object.entries(signalCatalog)) {
      for (const [name, { type }] of Object.entries<SignalDefinition>(names)) {
        const sent = (signals as Record<string, Record<string, unknown>>)[category]?.[name]
        const path = `signals.${category}.${name}`
        expect([path, row![path]]).toEqual([path, sent ?? (type === 'strings' ? [] : null)])
      }
    }
    expect(values).toHaveLength(
      Object.values(signalCatalog).flatMap((names) => Object.keys(names)).length,
    )
    // What the JSON column refuses without a cast.
    const counted = await read(
      `select signals.root.su_binary as found, count() as n, countIf(signals.root.su_binary) as m
       from analytics.typed_events
       where ${where} and signals.root.su_binary and not signals.tamper.app_attest_valid
       group by signals.root.su_binary order by signals.root.su_binary`,
    )
    expect(counted).toEqual([{ found: true, n: 1, m: 1 }])
  })

  it('have the reasons of events and alerts as rows with columns', async () => {
    const events = await read<{ reasons: string; rows: [string, number, string[]][] }>(
      `select any(reasons) as reasons, groupArray((code, weight, signals)) as rows
       from (select event_id, reasons from analytics.events where tenant_id = '${tenant}') as all
       join (select event_id, code, weight, signals from analytics.event_reasons
             where tenant_id = '${tenant}') as split using (event_id)
       group by event_id`,
    )
    expect(events.length).toBeGreaterThan(1)
    type Reason = { code: string; weight: number; evidence: Record<string, unknown> }
    for (const { reasons, rows } of events) {
      const expected = (JSON.parse(reasons) as Reason[]).map(({ code, weight, evidence }) => [
        ...[code, weight, evidence.signals ?? []],
      ])
      expect([...rows].sort()).toEqual([...expected].sort())
    }
    const ofAlerts = await read<Record<string, unknown>>(
      `select evidence, signals, metric, counted, threshold, time_window from analytics.reasons
       where tenant_id = '${tenant}'`,
    )
    expect(ofAlerts.length).toBeGreaterThan(1)
    for (const { evidence, ...columns } of ofAlerts) {
      const from = JSON.parse(String(evidence)) as Record<string, unknown>
      expect(columns).toEqual({
        signals: from.signals ?? [],
        metric: from.metric ?? '',
        counted: from.count ?? null,
        threshold: from.threshold ?? null,
        time_window: from.window ?? '',
      })
    }
  })

  it('have the time from raised to each change of a disposition', async () => {
    const changes = await read<Record<string, unknown>>(
      `select to_disposition, is_first, is_last, actor,
         seconds_after_raised = dateDiff('millisecond', created_at, at) / 1000 as fits
       from analytics.dispositions where tenant_id = '${tenant}' order by at, is_last`,
    )
    expect(changes).toEqual([
      { to_disposition: 'REVIEWED', is_first: true, is_last: false, actor: 'ann', fits: 1 },
      { to_disposition: 'CONFIRMED', is_first: false, is_last: true, actor: 'ann', fits: 1 },
    ])
  })

  it('count an invalid attestation as detected', async () => {
    await rig.publish([
      {
        tenantId: other,
        deviceId: 'attested',
        signals: { tamper: { app_attest_valid: false }, root: { su_binary: false } },
      },
    ])
    await rig.drained()
    expect(
      await read(`select signal from analytics.signals
        where tenant_id = '${other}' and device_id = 'attested'`),
    ).toEqual([{ signal: 'tamper.app_attest_valid' }])
  })
})

type Index = { Type: string; Keys?: string[]; Condition?: string }

/** The keys that let a query skip rows, of every table that it reads. */
async function keysUsed(query: string): Promise<string[][]> {
  const result = await rig.clickhouse.query({
    query: `explain indexes = 1, json = 1 ${query}`,
    format: 'TabSeparatedRaw',
  })
  const found: string[][] = []
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    const { Indexes } = node as { Indexes?: Index[] }
    if (Indexes !== undefined) {
      found.push(
        Indexes.filter((one) => one.Condition !== 'true').flatMap((one) => [
          ...(one.Keys ?? []),
          ...(one.Type === 'Skip' ? [(one as { Name?: string }).Name ?? ''] : []),
        ]),
      )
    }
    for (const child of Object.values(node)) visit(child)
  }
  visit(JSON.parse(await result.text()))
  return found
}

describe('filters', () => {
  beforeAll(async () => {
    const phone = `'${tenant}', 'phone', fromUnixTimestamp64Milli(${baseMs}), 'one'`
    for (const [table, id] of [
      ['installs', 'token_id'],
      ['replays', 'event_id'],
    ]) {
      const columns = `tenant_id, device_id, received_at, ${id}`
      await rig.clickhouse.command({ query: `insert into ${table} (${columns}) select ${phone}` })
    }
  })

  it.each([
    ['events', "device_id = 'phone'", ['tenant_id', 'device_id']],
    ['events', "received_at >= '2026-05-20'", ['tenant_id', 'received_at']],
    ['events', "user_id = 'eve'", ['tenant_id']],
    ['events', "account_id = 'eve'", ['tenant_id']],
    ['decisions', "device_id = 'phone'", ['tenant_id', 'device_id']],
    ['decisions', "received_at >= '2026-05-20'", ['tenant_id', 'received_at']],
    ['installs', "device_id = 'phone'", ['tenant_id', 'device_id']],
    ['installs', "received_at >= '2026-05-20'", ['tenant_id', 'received_at']],
    ['replays', "device_id = 'phone'", ['tenant_id', 'device_id']],
    ['replays', "received_at >= '2026-05-20'", ['tenant_id', 'received_at']],
    ['sessions', "device_id = 'phone' and session_id = 's1'", ['device_id', 'session_id']],
    ['devices', "device_id = 'phone'", ['tenant_id', 'device_id']],
    ['users', "user_id = 'eve'", ['tenant_id', 'user_id']],
    ['user_devices', "user_id = 'eve'", ['tenant_id', 'user_id']],
    ['alerts', "created_at >= '2026-05-20'", ['tenant_id', 'created_at']],
    ['alerts', "device_id = 'phone'", ['tenant_id']],
    ['alerts', "user_id = 'eve'", ['tenant_id']],
    ['dispositions', "created_at >= '2026-05-20'", ['tenant_id', 'created_at']],
    ['reasons', "created_at >= '2026-05-20'", ['tenant_id', 'created_at']],
    ['reasons', "device_id = 'phone'", ['tenant_id']],
    ['event_reasons', "device_id = 'phone'", ['tenant_id', 'device_id']],
    ['event_reasons', "received_at >= '2026-05-20'", ['tenant_id', 'received_at']],
    ['typed_events', "device_id = 'phone'", ['tenant_id', 'device_id']],
    ['typed_events', "received_at >= '2026-05-20'", ['tenant_id', 'received_at']],
    ['events', "platform = 'ios' and received_at >= '2026-05-20'", ['tenant_id', 'received_at']],
    ['signals', "device_id = 'phone'", ['tenant_id', 'device_id']],
    ['signals', "received_at >= '2026-05-20'", ['tenant_id', 'received_at']],
    ['signals', "user_id = 'eve'", ['tenant_id']],
    ['signal_share', "day >= '2026-05-20'", ['tenant_id', 'received_at']],
    ['deliveries', "created_at >= '2026-05-20'", ['tenant_id', 'created_at']],
    ['deliveries', "device_id = 'phone'", ['tenant_id']],
    ['precision_by_flag', "flag = 'ROOTED'", ['tenant_id']],
    ['precision_by_reason', "reason = 'ROOTED'", ['tenant_id']],
    ['precision_by_signal', "signal = 'root.su_binary'", ['tenant_id']],
    ['linked_entities', "alert_id = 'alr_1'", ['tenant_id']],
  ])('of %s by %s use the keys of the read table', async (view, filter, keys) => {
    // What was decided is looked up among all decisions of the tenant.
    const columns = view.endsWith('events') ? '* except (risk_score, action)' : '*'
    const used = await keysUsed(
      `select ${columns} from analytics.${view} where tenant_id = '${tenant}' and ${filter}`,
    )
    expect(used.length).toBeGreaterThan(0)
    for (const one of used) expect(one).toEqual(expect.arrayContaining(keys))
  })

  it('of user_devices_as_of use the keys of both tables', async () => {
    const used = await keysUsed(
      `select * from analytics.user_devices_as_of(as_of = '2026-05-20 00:00:00.000')
       where tenant_id = '${tenant}' and user_id = 'eve'`,
    )
    expect(used).toHaveLength(3)
    for (const one of used) expect(one).toContain('tenant_id')
    const joined = used.map((one) => one.join(' ')).join(' | ')
    expect(joined).toMatch(/tenant_id user_id( |$)|user_id tenant_id/)
  })
})

describe('the shape', () => {
  it('has its own database beside every internal one', () => {
    expect(toAnalyticsDatabase('device_intelligence')).toBe('analytics')
    expect(toAnalyticsDatabase('blue')).toBe('blue_analytics')
  })

  it('describes every view and every column', async () => {
    const views = await listDocumentedViews(rig.clickhouse)
    expect(views.length).toBeGreaterThanOrEqual(13)
    const silent = views.flatMap(({ name, comment, columns }) => [
      ...(comment === '' ? [name] : []),
      ...columns.filter((one) => one.comment === '').map((one) => `${name}.${one.name}`),
    ])
    expect(silent).toEqual([])
    const first = views
      .filter(({ columns }) => columns.length > 0)
      .filter(({ columns, name }) => name !== 'freshness' && columns[0]?.name !== 'tenant_id')
    expect(first).toEqual([])
  })

  it('keeps the promised names, order and types, with new columns after them', async () => {
    const promised = JSON.parse(
      readFileSync(new URL('../../vectors/analytics-columns.json', import.meta.url), 'utf8'),
    ) as Record<string, string[]>
    const views = await listDocumentedViews(rig.clickhouse)
    const now = new Map(
      views.map(({ name, columns }) => [name, columns.map((one) => `${one.name} ${one.type}`)]),
    )
    for (const [name, columns] of Object.entries(promised)) {
      const found = now.get(name) ?? []
      // A signal stands with those of its category.
      if (name === 'typed_events') expect(found).toEqual(expect.arrayContaining(columns))
      else expect([name, found.slice(0, columns.length)]).toEqual([name, columns])
    }
  })
})

describe('an erasure', () => {
  it('removes a device from every view while a replication is running', async () => {
    const where = `tenant_id = '${other}' and device_id = 'tablet'`
    const { alerts } = await listed(other)
    const lost = alerts.filter(({ entity }) => entity.device.device_id === 'tablet').length
    expect(lost).toBeGreaterThan(0)
    const running = replication.start()
    const receipt = await eraseNow(rig, { tenantId: other, kind: 'device', id: 'tablet' })
    await running.stop()
    await replication.runRound()
    expect(receipt.counts).toMatchObject({
      'clickhouse.alerts_replica': { before: lost, after: 0 },
      'clickhouse.deliveries_replica': { before: lost, after: 0 },
    })
    const views = await listDocumentedViews(rig.clickhouse)
    const ofDevices = views.filter((one) => one.columns.some(({ name }) => name === 'device_id'))
    expect(ofDevices.length).toBeGreaterThanOrEqual(8)
    for (const { name } of ofDevices) {
      expect([name, ...(await read(`select 1 from analytics.${name} where ${where}`))]).toEqual([
        name,
      ])
    }
    const left = await read<{ n: number }>(
      `select count() as n from analytics.alerts where tenant_id = '${other}'`,
    )
    expect(left).toEqual([{ n: alerts.length - lost }])
  })
})
