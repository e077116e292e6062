// Reconciliation on real servers with a real scorer: it agrees after repeats, redelivery, kills and
// restarts, deliberate removals are no difference, and manual deletions are reported.
import { randomBytes } from 'node:crypto'
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toIso } from '#shared/core/base/instants.ts'
import type { ReconciliationStage } from '#shared/core/reconciliation/reconciliation.ts'
import { reconciliationSchema } from '#shared/core/reconciliation/reconciliation-api.ts'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { createUserStore } from '#shared/io/devices/user-store.ts'
import { answerOnce } from '#shared/io/http/idempotent-answers.ts'
import { createPhoneAlerts } from '#shared/io/identity/phone-alerts.ts'
import { createPhoneCorrections } from '#shared/io/identity/phone-corrections.ts'
import { createPhoneStore } from '#shared/io/identity/phone-store.ts'
import { createProver } from '#shared/io/keys/proofs.ts'
import { createKeyedLists } from '#shared/io/lists/change-lists.ts'
import { createKeyedLabels } from '#shared/io/outcomes/change-labels.ts'
import { createCurrentPolicyStore } from '#shared/io/policies/current-policy-store.ts'
import { createMetrics, type Metrics } from '#shared/io/process/metrics.ts'
import { insertAcceptedClaims } from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import {
  createReconciliationStore,
  type ReconciliationStore,
} from '#shared/io/reconciliation/reconciliation-store.ts'
import { createEventListStore } from '#shared/io/telemetry/event-list-store.ts'
import { createEventStore } from '#shared/io/telemetry/event-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { createApiApp } from '../../../services/api/app.ts'
import {
  createReconciliation,
  type Reconciliation,
} from '../../../services/console/jobs/reconciliation/reconciliation.ts'
import { createReplication, type Replication } from '../../../services/console/jobs/replication.ts'
import { createRetention } from '../../../services/console/jobs/retention.ts'
import { setTenantRetention } from '../../../services/console/retention/manage-retention.ts'
import { addApiKey } from '../../support/http/api-rig.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { type EventFacts, signalsOf } from '../../support/telemetry/accepted-events.ts'
import { eraseNow } from '../../support/telemetry/erase-now.ts'
import { createScorerRig, type ScorerRig } from '../../support/telemetry/scorer-rig.ts'

const hourMs = 3_600_000
/** A whole hour, some hours ago. */
const atMs = Math.floor(Date.now() / hourMs) * hourMs - 6 * hourMs
const reportProver = createProver([randomBytes(32).toString('base64')])

let rig: ScorerRig
let store: ReconciliationStore
let reconciliation: Reconciliation
let metrics: Metrics
let count = 0

beforeAll(async () => {
  rig = await createScorerRig()
  for (const id of ['acme', 'globex', 'kept', 'gone', 'putback']) await rig.addTenant(id)
  await rig.startScorer()
  metrics = createMetrics('console')
  const { postgres, clickhouse } = rig
  const clocks = { nowMs: () => performance.now(), wallMs: Date.now }
  const common = { postgres, clickhouse, log: testLog, metrics, ...clocks }
  store = createReconciliationStore(clickhouse, 'analytics')
  reconciliation = createReconciliation({
    ...common,
    leases: { renewals: postgres, work: postgres },
    store,
    reportProver,
    findNats: () => rig.nats,
    confirmMs: 1,
  })
})
afterAll(() => rig?.close())

/** Events of one tenant, starting at an hour, every fifth with an alert. */
const makeEvents = (tenantId: string, n: number, fromMs = atMs): EventFacts[] =>
  Array.from({ length: n }, (_, index) => {
    const id = ++count
    const receivedAtMs = fromMs + index * 1_000
    const facts = { tenantId, deviceId: `d-${id}`, sessionId: `s-${id}`, receivedAtMs, nonce: id }
    return index % 5 === 0 ? { ...facts, signals: signalsOf.BLOCK } : facts
  })

function newReplication(): Replication {
  const { postgres, clickhouse } = rig
  const clocks = { nowMs: () => performance.now(), wallMs: Date.now }
  const common = { log: testLog, metrics: createMetrics('console'), ...clocks }
  return createReplication({
    ...common,
    postgres,
    clickhouse,
    leases: { renewals: postgres, work: postgres },
  })
}

/** Waits until the replicas and the low watermark have caught up with the decisions. */
async function settle(): Promise<void> {
  await rig.drained()
  let marked: boolean | null = null
  const marking = reconciliation.advance().then((done) => {
    marked = done
  })
  // A fresh replication reports at once the time up to which it has copied.
  while (marked === null) await Promise.all([newReplication().runRound(), pause(100)])
  await marking
  expect(marked).toBe(true)
}

async function readHour(tenantId: string, hour = atMs) {
  const { hours } = await store.readReconciliation({ tenantId, fromMs: hour, toMs: hour + hourMs })
  return hours[0]!
}

async function differenceOf(stage: ReconciliationStage | 'messages'): Promise<number> {
  const text = await metrics.registry.metrics()
  const line = new RegExp(`^di_reconciliation_difference\\{.*stage="${stage}".*\\} (\\d+)$`, 'm')
  return Number(line.exec(text)?.[1])
}

const command = (query: string) =>
  rig.clickhouse.command({ query, clickhouse_settings: { mutations_sync: '2' } })

describe('reconciliation agrees', () => {
  it('on events, repeats in this and a later hour, and several tenants in one message', async () => {
    const mine = makeEvents('acme', 40)
    const theirs = makeEvents('globex', 10)
    await rig.publish(...mine.map((one, index) => [one, ...theirs.slice(index, index + 1)]))
    const late = { ...mine[1]!, receivedAtMs: atMs + hourMs + 5 }
    await rig.publish([mine[0]!, mine[5]!], [{ ...mine[0]!, receivedAtMs: atMs + 9_000 }], [late])
    const claim = { edge_id: 'edge', hour_ms: atMs, accepted: { acme: 43, globex: 10 } }
    await insertAcceptedClaims(rig.clickhouse, [claim])
    await settle()
    const common = { refused: 0, erased: 0, inFlight: 0, differences: [], expired: false }
    expect(await readHour('acme')).toMatchObject({
      accepted: 43,
      stored: 43,
      repeats: 3,
      rows: 40,
      decided: 43,
      ...common,
      alertsExpected: 8,
      alerts: 8,
      deliveries: 8,
      attempted: 0,
      delivered: 0,
    })
    expect(await readHour('acme', atMs + hourMs)).toMatchObject({
      accepted: 0,
      stored: 1,
      repeats: 1,
      rows: 0,
      decided: 1,
      ...common,
    })
    expect(await readHour('globex')).toMatchObject({
      accepted: 10,
      stored: 10,
      repeats: 0,
      rows: 10,
      decided: 10,
      ...common,
      alertsExpected: 2,
      alerts: 2,
      deliveries: 2,
    })
    expect(await reconciliation.compare(atMs - hourMs)).toEqual([])
  })

  it('when everything is redelivered, and when rows are merged', async () => {
    const before = await readHour('acme')
    await rig.redeliverAll()
    await settle()
    for (const table of [
      'telemetry',
      'reconciliation_entries',
      'reconciliation_expected_alerts',
      'reconciliation_accepted',
    ]) {
      await command(`optimize table ${table} final`)
    }
    expect(await readHour('acme')).toEqual(before)
    expect(await reconciliation.compare(atMs - hourMs)).toEqual([])
  })

  it('on a repeat that replaced the first one, from an edge whose clock is behind', async () => {
    const [one] = makeEvents('kept', 1, atMs + 3 * hourMs + 1_000)
    await rig.publish([one!], [{ ...one!, receivedAtMs: atMs + 3 * hourMs - 1_000 }])
    await settle()
    await command('optimize table telemetry final')
    expect(await reconciliation.compare(atMs - hourMs)).toEqual([])
    expect(await readHour('kept', atMs + 3 * hourMs)).toMatchObject({ rows: 1, differences: [] })
  })

  it('after the scorer and ClickHouse were killed meanwhile', async () => {
    const events = makeEvents('acme', 100, atMs + hourMs)
    const publishing = (async () => {
      for (const one of events) await rig.publish([one])
    })()
    await rig.endScorers()
    await rig.startScorer()
    await rig.killClickhouse()
    await rig.restartClickhouse()
    await rig.endScorers()
    await rig.startScorer()
    await publishing
    await settle()
    expect(await readHour('acme', atMs + hourMs)).toMatchObject({
      stored: 101,
      repeats: 1,
      rows: 100,
      decided: 101,
      alertsExpected: 20,
      alerts: 20,
      deliveries: 20,
      inFlight: 0,
      differences: [],
    })
    expect(await reconciliation.compare(atMs - hourMs)).toEqual([])
  })

  it('after JetStream was put back to an earlier copy, which repeats sequences', async () => {
    const { natsServer } = rig
    const hour = atMs + 2 * hourMs
    await rig.startScorer()
    const publish = async (n: number) => {
      await until('NATS is connected', rig.nats.connected)
      // One device: its sessions and its alerts count across all events.
      const events = makeEvents('putback', n, hour).map((event) => ({
        ...event,
        deviceId: 'putback-device',
        signals: signalsOf.BLOCK,
      }))
      for (const event of events) await rig.publish([event])
    }
    const putBack = async () => {
      await natsServer.kill('SIGTERM')
      rmSync(files, { recursive: true })
      cpSync(copy, files, { recursive: true })
      await natsServer.restart()
    }
    const files = join(natsServer.dir, 'jetstream')
    const copy = join(natsServer.dir, 'copy')
    await publish(20)
    await rig.drained()
    await natsServer.kill('SIGTERM')
    cpSync(files, copy, { recursive: true })
    await natsServer.restart()
    await publish(15)
    await rig.drained()
    await putBack()
    await publish(10)
    await rig.drained()
    // Again, and the stream passes the newest stored sequence before a scorer can notice it.
    await rig.endScorers()
    await putBack()
    await publish(25)
    await Promise.all([rig.startScorer(), rig.startScorer()])
    await rig.drained()
    const result = await rig.clickhouse.query({
      query: `select uniqExact(event_id), uniqExact(stream_offset) from telemetry
        where tenant_id = 'putback'`,
      format: 'JSONCompactEachRow',
    })
    expect(await result.json()).toEqual([[70, 70]])
    await settle()
    expect(await readHour('putback', hour)).toMatchObject({
      stored: 70,
      repeats: 0,
      rows: 70,
      decided: 70,
      alertsExpected: 70,
      alerts: 70,
      deliveries: 70,
      inFlight: 0,
      differences: [],
    })
    expect(await reconciliation.compare(hour)).toEqual([])
    const device = await rig.history.findDevice({
      tenantId: 'putback',
      deviceId: 'putback-device',
      sessionsLimit: 1,
      before: null,
    })
    expect(device?.sessionsTotal).toBe(70)
    const noticed = await rig.postgres.query('select number from stream_incarnations')
    expect(noticed.rows).toHaveLength(2)
  })

  it('on stored but undecided events: they count as in transit and are not compared', async () => {
    const before = await readHour('globex', atMs + 2 * hourMs)
    expect(before).toBeUndefined()
    await rig.publish(makeEvents('globex', 7, atMs + 2 * hourMs))
    await rig.drained()
    expect(await readHour('globex', atMs + 2 * hourMs)).toMatchObject({
      stored: 7,
      inFlight: 7,
      rows: 0,
      decided: 0,
      alerts: 0,
      differences: [],
    })
    await settle()
    expect(await readHour('globex', atMs + 2 * hourMs)).toMatchObject({
      stored: 7,
      inFlight: 0,
      rows: 7,
      decided: 7,
      alerts: 2,
      differences: [],
    })
  })

  it('after an erasure and after retention, which it reports', async () => {
    const events = makeEvents('kept', 10)
    await rig.publish(events, [events[0]!])
    await settle()
    await eraseNow(rig, { tenantId: 'kept', kind: 'device', id: events[0]!.deviceId! })
    await settle()
    expect(await readHour('kept')).toMatchObject({
      stored: 11,
      erased: 2,
      repeats: 0,
      rows: 9,
      decided: 11,
      alerts: 1,
      differences: [],
    })
    expect(await reconciliation.compare(atMs - hourMs)).toEqual([])
    const oldMs = atMs - 3 * 24 * hourMs
    await rig.publish(makeEvents('gone', 5, oldMs))
    await settle()
    expect(await readHour('gone', oldMs)).toMatchObject({ rows: 5, alerts: 1 })
    expect(await reconciliation.compare(oldMs)).toEqual([])
    const { postgres, clickhouse } = rig
    const deps = {
      postgres,
      leases: { renewals: postgres, work: postgres },
      clickhouse,
      log: testLog,
      wallMs: Date.now,
    }
    const clocks = { nowMs: () => performance.now(), metrics: createMetrics('other') }
    const settings = { events: 2 }
    await setTenantRetention(deps, { tenantId: 'gone', settings, actor: 'test' })
    expect(await createRetention({ ...deps, ...clocks }).runRound()).toBe('done')
    await setTenantRetention(deps, { tenantId: 'gone', settings: { events: 90 }, actor: 'test' })
    await settle()
    const after = await readHour('gone', oldMs)
    expect(after).toMatchObject({ rows: 0, stored: 0, expired: true, differences: [] })
    expect(await reconciliation.compare(oldMs)).toEqual([])
  })
})

describe('GET /v1/di/ledger', () => {
  it('shows a tenant its own hours, the latest first, as documented', async () => {
    const key = await addApiKey(rig.postgres, 'acme', 'sandbox')
    const stranger = await addApiKey(rig.postgres, 'gone', 'sandbox')
    const app = await createApi()
    const read = (query: string, bearer = key) => {
      const headers = { authorization: `Bearer ${bearer}` }
      return app.inject({ url: `/v1/di/ledger?${query}`, headers })
    }
    const span = `from=${toIso(atMs)}&to=${toIso(atMs + 3 * hourMs)}`
    const answer = await read(span)
    expect(answer.statusCode).toBe(200)
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store' })
    expect(answer.headers).toHaveProperty('ratelimit')
    const reconciliation = reconciliationSchema.parse(answer.json())
    expect(reconciliation).toEqual(answer.json())
    expect(reconciliation).toMatchObject({ agrees: true, from: toIso(atMs) })
    expect(reconciliation.data.map(({ hour, rows }) => [hour, rows])).toEqual([
      [toIso(atMs + hourMs), 100],
      [toIso(atMs), 40],
    ])
    expect((await read(span, stranger)).json()).toMatchObject({ data: [], agrees: true })
    expect((await app.inject({ url: '/v1/di/ledger' })).statusCode).toBe(401)
    for (const [query, path] of [
      ['tenant_id=globex', 'tenant_id'],
      ['from=2026-01-01&to=2026-02-02', 'from'],
      ['from=yesterday', 'from'],
    ]) {
      const refused = await read(query!)
      expect([refused.statusCode, refused.json().errors[0].path]).toEqual([400, path])
    }
    await app.close()
  })
})

function createApi() {
  const { postgres, history } = rig
  const clocks = { nowMs: Date.now, monotonicMs: () => performance.now() }
  return createApiApp(
    {
      tenants: createTenantStore(postgres),
      alerts: createAlertStore(postgres),
      answerOnce: (call, work) => answerOnce(postgres, call, work),
      policies: createCurrentPolicyStore(postgres),
      lists: createKeyedLists(postgres, Date.now),
      labels: createKeyedLabels(postgres, Date.now),
      history,
      users: createUserStore(rig.clickhouse),
      phones: {
        ...createPhoneStore(rig.clickhouse, createPhoneCorrections(postgres)),
        ...createPhoneAlerts(postgres),
      },
      events: {
        ...createEventStore(rig.clickhouse),
        ...createEventListStore(rig.clickhouse, clocks),
      },
      reconciliation: store,
      readVerdictKeys: async () => ({ keys: [] }),
      ...clocks,
    },
    { log: testLog, metrics: createMetrics('api') },
  )
}

describe('reconciliation reports', () => {
  it('an event whose row was deleted', async () => {
    const { rows } = await rig.clickhouse
      .query({
        query: `select event_id from telemetry where tenant_id = 'acme'
          and device_id = 'd-3' limit 1`,
        format: 'JSON',
      })
      .then((result) => result.json<{ event_id: string }>())
      .then(({ data }) => ({ rows: data }))
    const eventId = rows[0]!.event_id
    await command(`alter table telemetry delete where event_id = '${eventId}'`)
    const named = { stage: 'rows', kind: 'missing', count: 1, ids: [eventId] }
    expect((await readHour('acme')).differences).toEqual([named])
    expect((await readHour('globex')).differences).toEqual([])
    expect(await reconciliation.compare(atMs - hourMs)).toEqual([
      { tenantId: 'acme', hourMs: atMs, ...named },
    ])
    expect(await differenceOf('rows')).toBe(1)
    // The stream still has it.
    await rig.redeliverAll()
    await settle()
    expect(await reconciliation.compare(atMs - hourMs)).toEqual([])
    expect(await differenceOf('rows')).toBe(0)
  })

  it('a deleted delivery, a deleted alert, and an alert without an event', async () => {
    const { rows } = await rig.postgres.query<{ alert_id: string }>(
      "select alert_id from alerts where tenant_id = 'globex' order by seq limit 2",
    )
    const [one, two] = rows.map((row) => row.alert_id)
    await rig.postgres.query('delete from deliveries where alert_id = $1', [one])
    await rig.postgres.query('delete from alerts where alert_id = $1', [two])
    await settle()
    const missing = { kind: 'missing', count: 1 }
    expect(await reconciliation.compare(atMs - hourMs)).toEqual([
      { tenantId: 'globex', hourMs: atMs, stage: 'alerts', ...missing, ids: [two] },
      { tenantId: 'globex', hourMs: atMs, stage: 'deliveries', ...missing, ids: [one] },
    ])
    expect(await differenceOf('alerts')).toBe(1)
    expect(await differenceOf('deliveries')).toBe(1)
    await rig.clickhouse.command({
      query: `insert into alerts_replica (tenant_id, created_at, alert_id, round)
        values ('kept', now64(3), 'alr_forged', 1)`,
    })
    const forged = (await reconciliation.compare(atMs)).filter(
      ({ tenantId }) => tenantId === 'kept',
    )
    expect(forged).toMatchObject([
      { stage: 'alerts', kind: 'unexplained', count: 1, ids: ['alr_forged'] },
    ])
  })

  it('accepted events that the stream lost, and a message that was never stored', async () => {
    const claim = { edge_id: 'another', hour_ms: atMs, accepted: { kept: 14 } }
    await insertAcceptedClaims(rig.clickhouse, [claim])
    expect((await readHour('kept')).differences).toEqual([
      { stage: 'accepted', kind: 'missing', count: 3, ids: [] },
    ])
    await rig.publish(makeEvents('kept', 1, atMs + 4 * hourMs))
    await settle()
    await command(`alter table reconciliation_entries delete where stage = 'stored'
      and tenant_id = 'kept' and hour = toDateTime(${(atMs + 4 * hourMs) / 1_000})`)
    const lost = (await reconciliation.compare(atMs)).filter(({ stage }) => stage === 'messages')
    expect(lost).toMatchObject([{ kind: 'missing', count: 1, tenantId: null }])
  })
})
