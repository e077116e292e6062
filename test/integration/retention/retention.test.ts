// Retention on real servers: rows beyond a tenant's limit are removed and no others, totals are
// exact at every moment, undelivered work is never removed, and several consoles share the work.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { AlertCandidate } from '#shared/core/alerts/decide-alert.ts'
import { tenantPhonesMin } from '#shared/core/base/limits/entities.ts'
import type { InstallTraits } from '#shared/core/identity/comparison.ts'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { listAlerts } from '#shared/io/alerts/list-alerts.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { beginReplay, replayAlert, replayNext } from '#shared/io/deliveries/replay-deliveries.ts'
import { setWebhookEvents } from '#shared/io/deliveries/webhook-store.ts'
import { createIdentityKeyWriter } from '#shared/io/identity/identity-key-store.ts'
import { createParameters } from '#shared/io/identity/parameters-store.ts'
import { createPhones } from '#shared/io/identity/phones.ts'
import { addLabels } from '#shared/io/outcomes/change-labels.ts'
import { listAudit } from '#shared/io/postgres/audit-store.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createMetrics, type Metrics } from '#shared/io/process/metrics.ts'
import { removeDeliveries } from '#shared/io/retention/retention-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { createLearning } from '../../../services/console/jobs/learning.ts'
import {
  createRetention,
  type Retention,
  type RetentionDeps,
} from '../../../services/console/jobs/retention.ts'
import { setTenantRetention } from '../../../services/console/retention/manage-retention.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import { hostingConnection, toColumns } from '../../support/telemetry/connections.ts'

const dayMs = 24 * 3_600_000
const nowMs = Date.now()
const daysAgo = (days: number) => nowMs - days * dayMs
const actor = 'test'

let servers: { postgres: TestPostgres; clickhouse: TestClickhouse }
let postgres: Postgres
let clickhouse: Clickhouse
let metrics: Metrics
let deps: RetentionDeps
let tenantId: string
let otherId: string

beforeAll(async () => {
  const [postgresServer, clickhouseServer] = await Promise.all([
    startPostgres(),
    startClickhouse({ isMigrated: true }),
  ])
  servers = { postgres: postgresServer, clickhouse: clickhouseServer }
  const url = await postgresServer.createMigratedDatabase()
  postgres = createPostgres(url, { role: 'test', log: testLog })
  clickhouse = createClickhouse(clickhouseServer.url, { name: 'test' })
})
afterAll(async () => {
  await Promise.all([postgres?.close(), clickhouse?.close()])
  await Promise.all([servers?.postgres.stop(), servers?.clickhouse.stop()])
})
beforeEach(async () => {
  await postgres.query('delete from tenants')
  for (const table of ['telemetry', 'sessions', 'devices', 'user_devices']) {
    await clickhouse.command({ query: `truncate table ${table}` })
  }
  tenantId = `tenant-${randomUUID().slice(0, 8)}`
  otherId = `other-${randomUUID().slice(0, 8)}`
  for (const id of [tenantId, otherId]) {
    await createTenantStore(postgres).insertTenant({
      tenantId: id,
      name: '',
      environment: 'sandbox',
      webhookUrl: null,
      policy: { hash: 'hash', text: '{}' },
      createdBy: actor,
    })
  }
  deps = createDeps()
})

function createDeps(): RetentionDeps {
  metrics = createMetrics('console')
  return {
    postgres,
    leases: { renewals: postgres, work: postgres },
    clickhouse,
    log: testLog,
    metrics,
    nowMs: () => performance.now(),
    wallMs: () => Date.now(),
  }
}

const set = (settings: Parameters<typeof setTenantRetention>[1]['settings'], id = tenantId) =>
  setTenantRetention(deps, { tenantId: id, settings, actor })

let present: { of: RetentionDeps; retention: Retention } | null = null
/** A round of one console, which records its removals. */
const round = () => {
  if (present?.of !== deps) present = { of: deps, retention: createRetention(deps) }
  return present.retention.runRound()
}

async function removedOf(store: string): Promise<number> {
  const text = await metrics.registry.metrics()
  const line = new RegExp(`^di_retention_removed_total\\{.*store="${store}".*\\} (\\d+)$`, 'm')
  return Number(line.exec(text)?.[1] ?? 0)
}

/** Raises one alert per given day, oldest first. */
async function raise(
  id: string,
  days: number[],
  more: Partial<AlertCandidate> = {},
): Promise<string[]> {
  const ids: string[] = []
  for (const day of [...days].sort((a, b) => b - a)) {
    const candidate = makeAlertCandidate({
      tenantId: id,
      sessionId: `session-${randomUUID()}`,
      ...more,
    })
    await raiseAlerts(postgres, [candidate], () => daysAgo(day))
    ids.push(candidate.alertId)
  }
  return ids
}

const endAll = (state: 'delivered' | 'failed' | 'skipped', days: number) =>
  postgres.query(
    `update deliveries set state = $1, created_at = $2, ended_at = $2 where ended_at is null`,
    [state, new Date(daysAgo(days)).toISOString()],
  )

async function count(sql: string): Promise<number> {
  const { rows } = await postgres.query<{ n: number }>(`select count(*) as n from ${sql}`)
  return rows[0]!.n
}

/** The answer's total under every filter, and the count of single rows. */
async function totals(id: string): Promise<{ returned: number[]; counted: number[] }> {
  const returned: number[] = []
  const counted: number[] = []
  for (const disposition of [undefined, 'OPEN', 'CONFIRMED'] as const) {
    for (const decision of [undefined, 'REVIEW', 'BLOCK'] as const) {
      for (const from of [undefined, daysAgo(40), daysAgo(3.5)]) {
        const query = {
          tenantId: id,
          filter: {
            disposition: disposition && [disposition],
            decision: decision && [decision],
            from,
          },
          limit: 500,
          after: null,
        }
        const page = await listAlerts(postgres, query)
        returned.push(page.total)
        counted.push(page.alerts.length)
      }
    }
  }
  return { returned, counted }
}

async function readColumn(sql: string): Promise<string[]> {
  const result = await clickhouse.query({ query: sql, format: 'JSONCompactEachRow' })
  return (await result.json<[string]>()).map(([value]) => value).sort()
}

async function receive(of: {
  id?: string
  device: string
  session: string
  user?: string
  days: number
  score?: number
  network?: string
}): Promise<void> {
  const at = new Date(daysAgo(of.days)).toISOString().replace('T', ' ').replace('Z', '')
  await clickhouse.insert({
    table: 'telemetry',
    format: 'JSONEachRow',
    values: [
      {
        tenant_id: of.id ?? tenantId,
        device_id: of.device,
        session_id: of.session,
        event_id: `evt_${randomUUID()}`,
        received_at: at,
        user_id: of.user ?? '',
        rasp_score: of.score ?? 10,
        connection_network: of.network ?? '',
        rasp_action: 'ALLOW',
        signals: { root: { su_binary: true } },
      },
    ],
  })
}

describe('limits', () => {
  it('are the defaults until they are set, one by one, and are in the audit log', async () => {
    const own = (days: number | null) => ({ days, default: false })
    const defaults = {
      events: { days: 400, default: true },
      alerts: { days: null, default: true },
      deliveries: { days: 30, default: true },
    }
    expect((await createTenantStore(postgres).findTenant(tenantId))?.retention).toEqual(defaults)
    await set({ events: 90 })
    const { retention } = await set({ alerts: 7, deliveries: 'forever' })
    const expected = { events: own(90), alerts: own(7), deliveries: own(null) }
    expect(retention).toEqual(expected)
    const [row] = await listAudit(postgres, { tenantId, limit: 1 })
    expect(row).toMatchObject({
      action: 'tenant.retention_set',
      before: { ...defaults, events: own(90) },
      after: expected,
    })
    const back = await set({ events: 'default', alerts: 'default', deliveries: 'default' })
    expect(back.retention).toEqual(defaults)
    expect((await createTenantStore(postgres).findTenant(otherId))?.retention).toEqual(defaults)
  })

  it('of a tenant that does not exist cannot be set', async () => {
    await expect(set({ events: 1 }, 'nobody')).rejects.toMatchObject({ code: 'tenant_not_found' })
  })
})

describe('alerts', () => {
  it('are removed with deliveries and dispositions, and every total stays exact', async () => {
    const days = [50, 45, 44.5, 10, 8, 6, 3, 2, 0.5]
    const connection = toColumns(hostingConnection)
    const ids = await raise(tenantId, days, { connection })
    const blocked = await raise(tenantId, [0.3, 0.2], { action: 'BLOCK', riskScore: 90 })
    await raise(otherId, [50, 10, 1])
    await endAll('delivered', 0)
    const { setDisposition } = createAlertStore(postgres)
    for (const alertId of [ids[0]!, ids[4]!, ids[7]!, blocked[0]!]) {
      await setDisposition({ alertId, disposition: 'CONFIRMED', note: null, actor })
    }
    for (const [tenant, ...ages] of [
      [tenantId, 50, 8, 6],
      [otherId, 50],
    ] as const) {
      const label = { subject: { user_id: 'u' }, label: 'fraud' }
      await addLabels(postgres, { tenantId: tenant, actor, body: ages.map(() => label), nowMs: 0 })
      await postgres.query(
        `update labels set created_at = now() - days * interval '1 day'
         from unnest($2::integer[]) with ordinality as aged (days, place)
         where tenant_id = $1
           and seq = (select min(seq) from labels where tenant_id = $1) + place - 1`,
        [tenant, ages],
      )
    }
    const untouched = await totals(otherId)
    await set({ alerts: 7 })
    expect(await round()).toBe('done')
    expect(await count(`labels where tenant_id = '${tenantId}'`)).toBe(1)
    expect(await count(`labels where tenant_id = '${otherId}'`)).toBe(1)
    expect(await removedOf('labels')).toBe(2)
    const { returned, counted } = await totals(tenantId)
    expect(returned).toEqual(counted)
    expect(returned[0]).toBe(6)
    expect(await totals(otherId)).toEqual(untouched)
    const left = await listAlerts(postgres, { tenantId, limit: 500, after: null })
    expect(left.alerts.map((alert) => alert.alert_id).sort()).toEqual(
      [...ids.slice(5), ...blocked].sort(),
    )
    // Four and none of the expired ones: the last two alerts have no connection.
    const ofNetwork = `connection_network <<= '${hostingConnection.network}'`
    expect(await count(`alerts where tenant_id = '${tenantId}' and ${ofNetwork}`)).toBe(4)
    expect(await count(`deliveries where tenant_id = '${tenantId}'`)).toBe(6)
    expect(await count(`alert_dispositions where tenant_id = '${tenantId}'`)).toBe(2)
    expect(
      await count(
        `alert_counts_by_day where tenant_id = '${tenantId}' and day < now() - interval '8 day'`,
      ),
    ).toBe(0)
    expect(await removedOf('alerts')).toBe(5)
    expect(await removedOf('deliveries')).toBe(5)
  })

  it('are kept until their delivery is sent', async () => {
    const [waiting] = await raise(tenantId, [20])
    await set({ alerts: 7 })
    expect(await round()).toBe('done')
    expect((await totals(tenantId)).returned[0]).toBe(1)
    expect(await count(`deliveries where alert_id = '${waiting}'`)).toBe(1)
    await endAll('failed', 0)
    await set({})
    expect(await round()).toBe('done')
    expect((await totals(tenantId)).returned[0]).toBe(0)
    expect(await count(`deliveries where alert_id = '${waiting}'`)).toBe(0)
  })

  it.each([
    ['their delivery', false],
    ['one of their deliveries', true],
  ])('are kept when %s is replayed while they are being removed', async (_, isUpdated) => {
    const [alertId] = await raise(tenantId, [20])
    if (isUpdated) {
      await setWebhookEvents(postgres, tenantId, ['risk.alert', 'alert.updated'])
      const change = { alertId: alertId!, disposition: 'CONFIRMED', note: null, actor } as const
      await createAlertStore(postgres).setDisposition(change)
    }
    await endAll('failed', 0)
    await postgres.query(`update deliveries set state = 'delivered' where event = 'alert.updated'`)
    await set({ alerts: 7 })
    let removing: Promise<unknown> = Promise.resolve()
    await postgres.transaction(async (tx) => {
      const scope = { sinceMs: null, onlyFailed: true }
      await replayNext(tx, { tenantId, scope, progress: await beginReplay(tx) })
      removing = round()
      await until('the removal waits', async () => {
        return (await count('pg_locks where not granted')) > 0
      })
    })
    expect(await removing).toBe('done')
    expect(await count(`deliveries where state = 'pending'`)).toBe(1)
    expect(await count(`alerts where alert_id = '${alertId}'`)).toBe(1)
  })

  it('are raised, confirmed and removed concurrently with exact totals', async () => {
    const ids = await raise(
      tenantId,
      Array.from({ length: 60 }, (_, at) => 8 + at),
    )
    await endAll('delivered', 0)
    await set({ alerts: 7 })
    const { setDisposition } = createAlertStore(postgres)
    await Promise.all([
      round(),
      ...ids
        .slice(0, 30)
        .map((alertId) => setDisposition({ alertId, disposition: 'CONFIRMED', note: null, actor })),
      raise(tenantId, [1, 2, 3]),
    ])
    await set({})
    expect(await round()).toBe('done')
    const { returned, counted } = await totals(tenantId)
    expect(returned).toEqual(counted)
    expect(returned[0]).toBe(3)
  })
})

describe('deliveries', () => {
  it('that are removed while their alert is replayed are created again', async () => {
    const [alertId] = await raise(tenantId, [1])
    await endAll('failed', 31)
    let replaying: Promise<unknown> = Promise.resolve()
    await postgres.transaction(async (tx) => {
      const overdue = { tenantId, cutoffMs: daysAgo(30) }
      expect(await removeDeliveries(tx, overdue, 10)).toMatchObject({ deliveries: 1 })
      replaying = postgres.transaction((own) => replayAlert(own, { tenantId, alertId: alertId! }))
      await until('the replay waits', async () => {
        return (await count('pg_locks where not granted')) > 0
      })
    })
    expect(await replaying).toMatchObject({ replayed: 1 })
    expect(await count(`deliveries where alert_id = '${alertId}' and state = 'pending'`)).toBe(1)
  })

  it('that ended before the limit are removed with their attempts, and no others', async () => {
    await raise(tenantId, [100, 99, 98, 97])
    await raise(otherId, [100])
    const { rows } = await postgres.query<{ delivery_id: string }>(
      'select delivery_id from deliveries where tenant_id = $1 order by delivery_id',
      [tenantId],
    )
    const [delivered, failed, young, pending] = rows.map((row) => row.delivery_id)
    const end = (id: string, state: string, days: number) =>
      postgres.query(
        'update deliveries set state = $2, created_at = $3, ended_at = $4 where delivery_id = $1',
        [id, state, new Date(daysAgo(100)), new Date(daysAgo(days))],
      )
    await end(delivered!, 'delivered', 31)
    await end(failed!, 'failed', 30.01)
    await end(young!, 'delivered', 29.9)
    await postgres.query('update deliveries set created_at = $2 where delivery_id = $1', [
      pending,
      new Date(daysAgo(100)),
    ])
    for (const id of [delivered, young]) {
      await postgres.query(
        `insert into delivery_attempts (delivery_id, delivery_created_at, attempt, at, duration_ms)
         select $1, created_at, attempt, now(), 5
         from deliveries, generate_series(1, 2) as attempt where delivery_id = $1`,
        [id],
      )
    }
    await set({ deliveries: 'default' })
    expect(await round()).toBe('done')
    const left = await postgres.query<{ delivery_id: string }>(
      'select delivery_id from deliveries where tenant_id = $1',
      [tenantId],
    )
    expect(left.rows.map((row) => row.delivery_id).sort()).toEqual([young, pending].sort())
    expect(await count('delivery_attempts')).toBe(2)
    expect(await count(`deliveries where tenant_id = '${otherId}'`)).toBe(1)
    expect(await removedOf('deliveries')).toBe(2)
    expect(await removedOf('attempts')).toBe(2)
    // The alerts themselves are kept without limit.
    expect((await totals(tenantId)).returned[0]).toBe(4)
  })

  it('without a limit are kept for ever', async () => {
    await raise(tenantId, [500])
    await endAll('delivered', 500)
    await set({ deliveries: 'forever' })
    expect(await round()).toBe('done')
    expect(await count(`deliveries where tenant_id = '${tenantId}'`)).toBe(1)
  })
})

describe('events', () => {
  it('are removed by day with their risk features; active devices keep theirs', async () => {
    const [gone, stayed] = ['203.0.113.0/24', '198.51.100.0/24']
    const old = { device: 'gone', session: 's-old', user: 'u-gone', days: 120, network: gone }
    await receive({ ...old, score: 60 })
    await receive({ device: 'active', session: 's-before', user: 'u-left', days: 120, score: 99 })
    await receive({ device: 'active', session: 's-long', user: 'u-here', days: 100 })
    await receive({ device: 'active', session: 's-long', user: 'u-here', days: 5 })
    await receive({ device: 'young', session: 's-young', days: 89.9, network: stayed })
    await receive({ id: otherId, device: 'gone', session: 's-old', user: 'u-gone', days: 120 })
    await set({ events: 90 })
    expect(await round()).toBe('done')
    const of = (columns: string, table: string) =>
      readColumn(`select distinct ${columns} from ${table} where tenant_id = '${tenantId}'`)
    expect(await of('session_id', 'telemetry')).toEqual(['s-long', 's-young'])
    expect(await of('session_id', 'sessions')).toEqual(['s-long', 's-young'])
    expect(await of('device_id', 'devices')).toEqual(['active', 'young'])
    expect(await of('user_id', 'user_devices')).toEqual(['u-here'])
    for (const [table, network] of [
      ['telemetry', 'connection_network'],
      ['sessions', 'connection.network'],
      ['devices', 'connection.network'],
    ] as const) {
      expect([table, ...(await of(network, table))]).toEqual([table, ...['', stayed]])
    }
    // A continued session keeps its start, and a device its first event and its peak.
    const started = await readColumn(
      `select toString(dateDiff('day', min(started_at), now())) from sessions
       where session_id = 's-long'`,
    )
    expect(started).toEqual(['100'])
    const known = await readColumn(
      `select concat(toString(dateDiff('day', min(first_seen_at), now())), ' ',
         toString(max(peak_rasp_score))) from devices where device_id = 'active'`,
    )
    expect(known).toEqual(['120 99'])
    for (const table of ['telemetry', 'sessions', 'devices']) {
      expect(
        await readColumn(`select device_id from ${table} where tenant_id = '${otherId}'`),
      ).toEqual(['gone'])
    }
    expect(await removedOf('telemetry')).toBe(3)
    expect(await removedOf('sessions')).toBe(2)
    expect(await removedOf('devices')).toBe(1)
    expect(await removedOf('user_devices')).toBe(2)
  })

  it('of months that are too old for every tenant are removed without a mutation', async () => {
    await receive({ device: 'a', session: 's', days: 800 })
    await receive({ id: otherId, device: 'b', session: 's', days: 800 })
    await receive({ device: 'a', session: 't', days: 1 })
    const mutations = () =>
      readColumn("select mutation_id from system.mutations where table = 'telemetry'")
    const before = await mutations()
    await set({})
    expect(await round()).toBe('done')
    expect(await readColumn('select session_id from telemetry')).toEqual(['t'])
    expect(await mutations()).toEqual(before)
  })

  it('of a tenant without a limit keep their month; others are removed by row', async () => {
    await receive({ device: 'a', session: 's', days: 800 })
    await receive({ id: otherId, device: 'b', session: 's', days: 800 })
    await set({ events: 'forever' }, otherId)
    expect(await round()).toBe('done')
    expect(await readColumn('select device_id from telemetry')).toEqual(['b'])
  })
})

describe('rows of operators', () => {
  it('are removed: old sessions, invitations and bulk jobs, expired audit entries', async () => {
    await postgres.query(
      `insert into operators (operator_id, email, name, role, password_hash, created_at, created_by)
       values ('opr_' || repeat('a', 22), 'ann@example.com', '', 'viewer', '$argon2id$x', now(), 'x')`,
    )
    const hashOf = (n: number) => Buffer.alloc(32, n)
    const names = ['a', 'b', 'c', 'd']
    for (const [n, hours] of [1, 11, 13, 9_000].entries()) {
      await postgres.query(
        `insert into operator_sessions (session_id, token_hash, operator_id, created_at,
           last_used_at, signed_in_by, address, user_agent)
         values ('ses_' || repeat($1, 22), $2, 'opr_' || repeat('a', 22),
           now() - make_interval(hours => $3), now(), 'password', '', '')`,
        [names[n], hashOf(n), hours],
      )
    }
    const invite = (n: number, ended: string) =>
      postgres.query(
        `insert into operator_invitations (invitation_id, token_hash, email, name, role,
           created_at, created_by, expires_at, accepted_at, revoked_at)
         values ('inv_' || repeat($1, 22), $2, $1 || '@example.com', '', 'viewer',
           now() - interval '60 days', 'x', ${ended})`,
        [names[n], hashOf(n)],
      )
    await invite(0, "now() + interval '1 day', null, null")
    await invite(1, "now() - interval '31 days', null, null")
    await invite(2, "now() - interval '53 days', now() - interval '29 days', null")
    await invite(3, "now() - interval '53 days', null, now() - interval '31 days'")
    for (const days of [399, 401]) {
      await postgres.query(
        `insert into audit_log (at, actor, action)
         values (now() - make_interval(days => $1), 'aged', 'tenant.tested')`,
        [days],
      )
    }
    for (const [id, ended] of [
      ['running', 'null'],
      ['recent', "now() - interval '29 days'"],
      ['old', "now() - interval '31 days'"],
    ]) {
      await postgres.query(
        `insert into bulk_jobs
           (job_id, tenant_id, sets, filter, disposition, actor, state, total, until_at, ended_at)
         values ($1, $2, 'disposition', '{}', 'REVIEWED', 'x', $3, 0, now(), ${ended})`,
        [id, tenantId, id === 'running' ? 'running' : 'done'],
      )
    }
    for (const [id, ended] of [
      ['waiting', 'null'],
      ['recent', "now() - interval '399 days'"],
      ['old', "now() - interval '401 days'"],
    ]) {
      const [state, sealed, receipt] =
        id === 'waiting' ? ['waiting', 'sealed', null] : ['done', null, '{}']
      await postgres.query(
        `insert into erasures (erasure_id, tenant_id, kind, subject_sha256, sealed, requested_by,
           state, receipt, ended_at)
         values ($1, $2, 'device', $1, $3, 'x', $4, $5, ${ended})`,
        [id, tenantId, sealed, state, receipt],
      )
    }
    await set({ alerts: 7 })
    expect(await round()).toBe('done')
    const texts = async (sql: string) =>
      (await postgres.query<{ text: string }>(sql)).rows.map(({ text }) => text)
    expect(
      await texts('select substr(session_id, 5, 1) as text from operator_sessions order by 1'),
    ).toEqual(['a', 'b'])
    expect(
      await texts('select substr(email, 1, 1) as text from operator_invitations order by 1'),
    ).toEqual(['a', 'c'])
    expect(await texts('select job_id as text from bulk_jobs order by 1')).toEqual([
      'recent',
      'running',
    ])
    expect(await texts('select erasure_id as text from erasures order by 1')).toEqual([
      'recent',
      'waiting',
    ])
    expect(await count("audit_log where actor = 'aged'")).toBe(1)
    expect(await removedOf('operator_sessions')).toBe(2)
    expect(await removedOf('operator_invitations')).toBe(2)
    expect(await removedOf('audit_log')).toBe(1)
    await expect(
      postgres.query("delete from audit_log where actor = 'aged'"),
    ).rejects.toMatchObject({ code: '23001' })
  })
})

describe('rounds', () => {
  it('of several concurrent consoles remove everything once', async () => {
    await raise(
      tenantId,
      Array.from({ length: 40 }, (_, at) => 10 + at),
    )
    await endAll('delivered', 0)
    for (let at = 0; at < 5; at++) await receive({ device: `d-${at}`, session: 's', days: 100 })
    await set({ alerts: 7, events: 90 })
    const consoles = [1, 2, 3].map(() => createDeps()).map((of) => ({ of, metrics: of.metrics }))
    const outcomes = await Promise.all(consoles.map(({ of }) => createRetention(of).runRound()))
    expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(1)
    let removed = 0
    for (const one of consoles) {
      metrics = one.metrics
      removed += await removedOf('alerts')
    }
    expect(removed).toBe(40)
    const { returned, counted } = await totals(tenantId)
    expect(returned).toEqual(counted)
    expect(returned[0]).toBe(0)
    expect(await readColumn('select device_id from telemetry')).toEqual([])
  })

  it('are due after an hour or a change, not before, and find nothing a second time', async () => {
    await raise(tenantId, [10])
    await endAll('delivered', 0)
    await set({ alerts: 7 })
    expect(await round()).toBe('done')
    expect(await round()).toBe('not_due')
    await set({ alerts: 7 })
    expect(await round()).toBe('done')
    expect(await removedOf('alerts')).toBe(1)
    const { rows } = await postgres.query<{ minutes: number }>(
      `select (extract(epoch from due_at - now()) / 60)::float8 as minutes from retention_rounds`,
    )
    expect(rows[0]!.minutes).toBeGreaterThan(59)
    expect(rows[0]!.minutes).toBeLessThanOrEqual(60)
  })

  it('without ClickHouse continue in Postgres, count the failure and retry soon', async () => {
    await raise(tenantId, [10])
    await endAll('delivered', 0)
    await set({ alerts: 7, events: 90 })
    const away = createClickhouse('http://127.0.0.1:9/none', { name: 'test' })
    deps = { ...createDeps(), clickhouse: away }
    expect(await round()).toBe('failed')
    await away.close()
    expect((await totals(tenantId)).returned[0]).toBe(0)
    expect(await metrics.registry.metrics()).toMatch(
      /di_retention_failures_total\{.*store="telemetry".*\} [1-9]/,
    )
    const { rows } = await postgres.query<{ seconds: number }>(
      'select extract(epoch from due_at - now())::float8 as seconds from retention_rounds',
    )
    expect(rows[0]!.seconds).toBeLessThanOrEqual(60)
  })

  it('on a console whose clock is ahead remove no row within the limit', async () => {
    await raise(tenantId, [1])
    await endAll('delivered', 1)
    await receive({ device: 'a', session: 's', days: 1 })
    await set({ alerts: 7, deliveries: 7, events: 7 })
    deps = { ...deps, wallMs: () => Date.now() + 1_000 * dayMs }
    expect(await round()).toBe('done')
    expect((await totals(tenantId)).returned[0]).toBe(1)
    expect(await count(`deliveries where tenant_id = '${tenantId}'`)).toBe(1)
    expect(await readColumn('select device_id from telemetry')).toEqual(['a'])
  })
})

describe('learning of parameters', () => {
  const phones = 720
  const install = (n: number, traits: Partial<InstallTraits>) => ({
    tenant_id: tenantId,
    body: { device_id: `i-${n}` },
    received_at: nowMs - 3_600_000 + n,
    streamOffset: n + 1,
    traits: {
      identifiers: {},
      hardware: `model-${n % 200}`,
      model: `model-${n % 200}`,
      memoryBytes: null,
      setup: `model-${n % 200} ${n % 400}`,
      network: null,
      users: [],
      bootAtMs: null,
      ...traits,
    },
  })

  /** Phones of which every second one comes back, with its identifier but for one in ten. */
  async function addInstalls(): Promise<void> {
    const firsts = Array.from({ length: phones }, (_, n) =>
      install(n, { identifiers: { keychain_id: `k-${n}` }, users: [`u-${n}`] }),
    )
    const again = Array.from({ length: phones / 2 }, (_, n) => {
      const keychain_id = n % 10 === 0 ? `new-${n}` : `k-${n}`
      const { traits } = firsts[n]!
      return install(phones + n, { ...traits, identifiers: { keychain_id } })
    })
    const events = [...firsts, ...again]
    await createIdentityKeyWriter(clickhouse).insertIdentityKeys(events as never)
    const { findFacts, insertLinks } = createPhones(clickhouse, postgres)
    const seen = events.map(({ body, received_at: atMs }) => ({
      tenantId,
      deviceId: body.device_id,
      atMs,
      traits: null,
    }))
    const facts = await findFacts(seen)
    await insertLinks(facts.flatMap((one) => one?.decided ?? []))
  }

  const versionsOf = async () => {
    const { rows } = await postgres.query<{ tenant_id: string; version: number; ahead: number }>(
      `select tenant_id, version,
         extract(epoch from valid_from - clock_timestamp())::float8 as ahead
       from identity_parameters order by tenant_id, version`,
    )
    return rows
  }

  it('writes a version a day, for later events, of tenants with enough new installs', async () => {
    await addInstalls()
    let wallMs = Date.now()
    const run = () => {
      metrics = createMetrics('console')
      return createLearning({ ...deps, metrics, wallMs: () => wallMs }).runRound()
    }
    const outcomes = await Promise.all([1, 2, 3].map(run))
    expect(outcomes).toContain('done')
    const [written, ...others] = await versionsOf()
    expect(others).toEqual([])
    expect(written).toMatchObject({ tenant_id: tenantId, version: 1 })
    expect(written!.ahead).toBeGreaterThan(3_500)
    const find = await createParameters(postgres)([tenantId])
    expect(find(tenantId, Date.now())).toBeNull()
    const learned = find(tenantId, Date.now() + 2 * 3_600_000)!
    expect(learned).toMatchObject({ version: 1, phones: tenantPhonesMin })
    expect(learned.returning).toBeGreaterThan(0.3)
    expect(learned.returning).toBeLessThan(0.36)
    const { same } = learned.fields['identifier keychain_id']!
    expect(same[1]).toBeGreaterThan(0.87)
    expect(same[1]).toBeLessThan(0.93)

    // The same day again, from a console that knows nothing of the round before.
    expect(await run()).toBe('done')
    expect(await versionsOf()).toHaveLength(1)
    expect(await metrics.registry.metrics()).toMatch(
      /^di_identity_parameters_total\{.*outcome="written".*\} 0$/m,
    )

    // What no kept event is decided by is removed.
    for (const days of [1, 2]) {
      await postgres.query(
        "update identity_parameters set valid_from = valid_from - interval '40 d'",
      )
      wallMs = Date.now() + days * dayMs
      await postgres.query(
        "update identity_parameters set created_at = created_at - interval '3 d'",
      )
      expect(await run()).toBe('done')
    }
    expect((await versionsOf()).map(({ version }) => version)).toEqual([2, 3])
  })
})
