// The replica of alerts, dispositions and deliveries in ClickHouse equals Postgres: after any
// changes, any order of commits, any interruption of a replication, and after erasures.
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { toPhoneId } from '#shared/core/identity/phone-id.ts'
import type { LabelBody } from '#shared/core/outcomes/label-schemas.ts'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { addNote, setAssignee } from '#shared/io/alerts/alert-work-store.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { insertRemovals, purgeRemovals } from '#shared/io/analytics/replica-rows-store.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { eraseAlerts } from '#shared/io/erasure/erasure-alerts-store.ts'
import { createErasureStore } from '#shared/io/erasure/erasure-store.ts'
import { correctPhone, undoCorrection } from '#shared/io/identity/correct-phone.ts'
import { addLabels } from '#shared/io/outcomes/change-labels.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createMetrics, type Metrics } from '#shared/io/process/metrics.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { createReplication, type Replication } from '../../../services/console/jobs/replication.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { insertLinks } from '../../support/identity/phone-links.ts'
import { emptyTables, useClickhouse } from '../../support/servers/migrated-clickhouse.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

const [ann, bob] = ['a', 'b'].map((one) => `opr_${one.repeat(22)}`) as [string, string]
const clickhouse = await useClickhouse()
let server: TestPostgres
let postgres: Postgres
let metrics: Metrics
let replication: Replication
let tenantId: string

beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  await emptyTables(clickhouse)
  postgres = createPostgres(await server.createMigratedDatabase(), { role: 'test', log: testLog })
  tenantId = 'acme'
  await createTenantStore(postgres).insertTenant({
    tenantId,
    name: '',
    environment: 'sandbox',
    webhookUrl: null,
    policy: { hash: 'hash', text: '{}' },
    createdBy: 'test',
  })
  replication = makeReplication()
})
afterEach(() => postgres.close())

function makeReplication(
  more: { clickhouse?: Clickhouse; postgres?: Postgres; pageRows?: number } = {},
): Replication {
  metrics = createMetrics('console')
  return createReplication({
    postgres,
    leases: { renewals: postgres, work: postgres },
    clickhouse,
    log: testLog,
    metrics,
    nowMs: () => performance.now(),
    wallMs: Date.now,
    ...more,
  })
}

const raise = (count: number, more: Partial<Parameters<typeof makeAlertCandidate>[0]> = {}) => {
  const candidates = Array.from({ length: count }, () =>
    makeAlertCandidate({ tenantId, sessionId: `s-${randomUUID()}`, ...more }),
  )
  return raiseAlerts(postgres, candidates, Date.now).then(() => candidates)
}
const dispose = (alertId: string, disposition: 'CONFIRMED' | 'OPEN') =>
  createAlertStore(postgres).setDisposition({ alertId, disposition, note: null, actor: 'ann' })
const attempt = (alertId: string, number: number, status: number) =>
  postgres.query(
    `with tried as (
       update deliveries set attempts = $2,
         state = case when $3 < 300 then 'delivered' else 'pending' end,
         ended_at = case when $3 < 300 then now() end
       where alert_id = $1 returning delivery_id, created_at
     )
     insert into delivery_attempts
       (delivery_id, delivery_created_at, attempt, at, duration_ms, status, error_kind)
     select delivery_id, created_at, $2, now(), 12, $3,
       case when $3 < 300 then null else 'status' end
     from tried`,
    [alertId, number, status],
  )

type Rows = { alerts: unknown[]; deliveries: unknown[]; labels: unknown[] }

async function readCopy(): Promise<Rows> {
  const read = async (query: string) => {
    const result = await clickhouse.query({ query, format: 'JSONCompactEachRow' })
    return result.json<unknown[]>()
  }
  return {
    alerts: await read(`select alert_id, seq, device_id, disposition, history.to_disposition,
        assignee, toUnixTimestamp64Milli(updated_at), connection_network, connection_country,
        connection_asn, connection_organization, connection_kinds
      from analytics.alerts order by alert_id`),
    deliveries: await read(`select delivery_id, alert_id, state, attempts, attempt_status,
        attempt_error_kind from analytics.deliveries order by delivery_id`),
    labels: await read(`select label_id, subject_kind, subject_id, label, is_latest,
        toUnixTimestamp64Milli(occurred_at), covered_days, toString(amount), currency, external_id,
        note, actor from analytics.labels order by label_id`),
  }
}

async function readTruth(): Promise<Rows> {
  const rows = async (text: string) =>
    (await postgres.query<{ row: unknown[] }>(text)).rows.map(({ row }) => row)
  return {
    alerts: await rows(`select json_build_array(alert_id, seq, device_id, disposition, coalesce((
        select json_agg(to_disposition order by disposition_id) from alert_dispositions as d
        where d.alert_id = a.alert_id), '[]'), coalesce((
        select operator_id from operators where email = a.assignee), ''),
        floor(extract(epoch from coalesce(changed_at, created_at)) * 1000)::bigint,
        coalesce(connection_network::text, ''), coalesce(connection_country, ''),
        coalesce(connection_asn, 0), coalesce(connection_organization, ''),
        coalesce(connection_kinds, '{}')) as row
      from alerts as a order by alert_id collate "C"`),
    deliveries: await rows(`select json_build_array(delivery_id, coalesce(alert_id, ''), state,
        attempts, coalesce((select json_agg(status order by attempt) from delivery_attempts as t
          where t.delivery_id = d.delivery_id), '[]'),
        coalesce((select json_agg(coalesce(error_kind, '') order by attempt)
          from delivery_attempts as t where t.delivery_id = d.delivery_id), '[]')) as row
      from deliveries as d order by delivery_id collate "C"`),
    labels: await rows(`select json_build_array(label_id, subject_kind, subject_id, label,
        seq = max(seq) over (partition by subject_kind, subject_id, external_id),
        (extract(epoch from occurred_at) * 1000)::bigint, covered_days,
        trim_scale(coalesce(amount, 0))::text, coalesce(currency, ''), external_id,
        coalesce(note, ''), coalesce(
          (select operator_id from operators where email = l.actor), actor)) as row
      from labels as l order by label_id`),
  }
}

async function expectEqual(): Promise<Rows> {
  const copy = await readCopy()
  expect(copy).toEqual(await readTruth())
  return copy
}

const label = (labels: LabelBody[], actor = 'ann@example.org') =>
  addLabels(postgres, { tenantId, actor, body: labels, nowMs: Date.now() })

describe('a replication round', () => {
  it('copies alerts, dispositions, attempts, ends, replays, tests and removals', async () => {
    // Before the first round: the copy of everything.
    const [first] = await raise(3)
    await dispose(first!.alertId, 'CONFIRMED')
    expect(await replication.runRound()).toBe('copied')
    expect((await expectEqual()).alerts).toHaveLength(3)
    expect(await replication.runRound()).toBe('idle')

    const [second, third] = await raise(2)
    await dispose(first!.alertId, 'OPEN')
    await attempt(second!.alertId, 1, 500)
    await replication.runRound()
    await expectEqual()

    await attempt(second!.alertId, 2, 200)
    await postgres.query(
      `update deliveries set state = 'skipped', reason = 'no_webhook', ended_at = now()
       where alert_id = $1`,
      [third!.alertId],
    )
    await postgres.query(
      `insert into deliveries (tenant_id, delivery_id, event, body, due_at)
       values ($1, 'dlv_test', 'webhook.test', '', now() - interval '1 second')`,
      [tenantId],
    )
    expect(await replication.runRound()).toBe('copied')
    await expectEqual()

    // A replay, and a delivery that is created again.
    await postgres.query(
      `update deliveries set state = 'pending', ended_at = null, reason = null,
         attempts_before_replay = attempts where alert_id in ($1, $2)`,
      [second!.alertId, third!.alertId],
    )
    expect(await replication.runRound()).toBe('copied')
    await expectEqual()

    await postgres.query('delete from deliveries where alert_id = $1', [second!.alertId])
    await postgres.query('delete from alerts where alert_id = $1', [third!.alertId])
    expect(await replication.runRound()).toBe('copied')
    const left = await expectEqual()
    expect(left.alerts).toHaveLength(4)
    expect(await purgeRemovals(clickhouse)).toBe(2)
    await expectEqual()
    expect(await replication.runRound()).toBe('idle')
  })

  it('copies corrections of phones, also those that an older console passed over', async () => {
    const kinds = { first: 'install-1', second: 'install-2' }
    await insertLinks(clickhouse, [
      { tenantId, deviceId: kinds.first, atMs: 1_000 },
      { tenantId, deviceId: kinds.second, firstDeviceId: kinds.first, atMs: 2_000 },
    ])
    const own = toPhoneId(tenantId, kinds.second)
    const shared = toPhoneId(tenantId, kinds.first)
    const correct = (phoneId: string | null) =>
      correctPhone(postgres, {
        tenantId,
        deviceId: kinds.second,
        phoneId,
        reason: 'sold',
        actor: 'ann@example.com',
        decided: { phoneId: shared, targetInstalls: 2 },
      })
    const readViews = async () => {
      const query = `select phone_id, link, (select groupArray((phone_id, installs, corrected))
          from (select * from analytics.phones order by phone_id))
        from analytics.phone_links where device_id = '${kinds.second}'`
      const result = await clickhouse.query({ query, format: 'JSONCompactEachRow' })
      return (await result.json<unknown[]>())[0]
    }
    const together = [shared, 'linked', [[shared, 2, 0]]]
    const apart = [
      own,
      'corrected',
      [
        [own, 1, 1],
        [shared, 1, 0],
      ].sort(),
    ]
    await replication.runRound()
    expect(await readViews()).toEqual(together)
    const split = await correct(null)
    expect(await replication.runRound()).toBe('copied')
    expect(await readViews()).toEqual(apart)
    expect(await replication.runRound()).toBe('idle')
    await undoCorrection(postgres, {
      tenantId,
      correctionId: split.correction_id,
      actor: 'ann@example.com',
    })
    await replication.runRound()
    expect(await readViews()).toEqual(together)

    // An older release moves its own snapshot alone.
    await correct(null)
    await postgres.query('update replication_state set replicated_snapshot = pg_current_snapshot()')
    expect(await replication.runRound()).toBe('copied')
    expect(await readViews()).toEqual(apart)

    // A copy of everything hides what Postgres no longer has.
    await postgres.query('delete from phone_corrections')
    await postgres.query('update replication_state set cluster_id = null')
    await replication.runRound()
    expect(await readViews()).toEqual(together)
  })

  it('copies changes of assignees and notes, with the ids of operators and no emails', async () => {
    await postgres.query(
      `insert into operators
         (operator_id, email, name, role, password_hash, created_at, created_by)
       select id, email, '', 'analyst', '$argon2id$', now(), 'test'
       from unnest($1::text[], $2::text[]) as made (id, email)`,
      [
        [ann, bob],
        ['ann@example.org', 'bob@example.org'],
      ],
    )
    const [first, second] = await raise(3)
    const assign = (alertId: string, assignee: string | null) =>
      setAssignee(postgres, { alertId, assignee, scope: 'all', actor: 'ann@example.org' })
    const assignees = async () =>
      (await expectEqual()).alerts.map((row) => (row as string[])[5]).sort()
    await assign(first!.alertId, 'ann@example.org')
    await replication.runRound()
    expect(await assignees()).toEqual(['', '', ann])
    await assign(first!.alertId, 'bob@example.org')
    await assign(second!.alertId, 'ann@example.org')
    expect(await replication.runRound()).toBe('copied')
    expect(await assignees()).toEqual(['', ann, bob])
    await assign(first!.alertId, null)
    expect(await replication.runRound()).toBe('copied')
    expect(await assignees()).toEqual(['', '', ann])
    const note = { alertId: second!.alertId, scope: 'all', actor: 'ann@example.org' } as const
    await addNote(postgres, { ...note, note: 'Called back.', most: 10 })
    expect(await replication.runRound()).toBe('copied')
    await expectEqual()
    expect(await replication.runRound()).toBe('idle')
  })

  it('copies labels, superseded and retracted ones, and forgets those that are removed', async () => {
    const subject = { device_id: 'phone' }
    await label([{ subject, label: 'fraud', amount: '0.1', currency: 'EUR', note: 'a' }])
    expect(await replication.runRound()).toBe('copied')
    expect((await expectEqual()).labels).toHaveLength(1)
    const later = Array.from({ length: 2_100 }, (_, n) => ({
      subject: { user_id: `u${n}` },
      label: 'legitimate',
      external_id: 'case',
    }))
    const retraction = { subject, label: 'retracted' }
    await label([...later, retraction])
    expect(await replication.runRound()).toBe('copied')
    expect((await expectEqual()).labels).toHaveLength(2_102)
    await postgres.query("delete from labels where subject_kind = 'user'")
    expect(await replication.runRound()).toBe('copied')
    expect((await expectEqual()).labels).toHaveLength(2)
    expect(await purgeRemovals(clickhouse)).toBe(2_100)
    await expectEqual()
    const { rows } = await postgres.query('select labels from label_totals')
    expect(rows).toEqual([{ labels: 2 }])
    // A release that knows no labels ended a round, and forgot what was removed.
    await postgres.query('delete from labels')
    await postgres.query('delete from replication_removals')
    await postgres.query('update replication_state set labelled_round = labelled_round - 1')
    expect(await replication.runRound()).toBe('copied')
    expect((await expectEqual()).labels).toEqual([])
    expect(await replication.runRound()).toBe('idle')
  })

  it('copies everything again after a round of a release without some columns', async () => {
    const [one] = await raise(2)
    await replication.runRound()
    await clickhouse.command({
      query: `alter table alerts_replica update changed_at = '2020-01-01 00:00:00' where 1`,
      clickhouse_settings: { mutations_sync: '2' },
    })
    expect(await replication.runRound()).toBe('idle')
    // Its round ends as the one before, and does not know of whole rounds.
    await postgres.query(`update replication_state set whole_round = whole_round - 1`)
    expect(await replication.runRound()).toBe('copied')
    expect((await expectEqual()).alerts).toHaveLength(2)
    await dispose(one!.alertId, 'CONFIRMED')
    await replication.runRound()
    await expectEqual()
  })

  it('removes thousands of expired rows, and erased expected alerts', async () => {
    const ids = Array.from({ length: 5_500 }, (_, n) => `alr_${String(n).padStart(28, '0')}`)
    const createdAt = '2026-01-02 03:04:05.678'
    const removals = ids.map((id) => ({ ...({ kind: 'alert', tenantId, createdAt, id } as const) }))
    await insertRemovals(clickhouse, 1, removals)
    expect(await purgeRemovals(clickhouse)).toBe(5_500)
    const count = async (table: string) => {
      const query = `select count() from ${table}`
      const answer = await clickhouse.query({ query, format: 'JSONCompactEachRow' })
      return (await answer.json<[number]>())[0]![0]
    }
    expect(await count('alerts_replica')).toBe(0)
    await clickhouse.command({
      query: `insert into reconciliation_expected_alerts (tenant_id, alert_id, first)
        select '${tenantId}', concat('alr_', leftPad(toString(number), 28, '0')), (1, now())
        from numbers(5501)`,
    })
    await createErasureStore(clickhouse).eraseExpectedAlerts(tenantId, ids)
    expect(await count('reconciliation_expected_alerts')).toBe(1)
  })

  it('misses nothing of a transaction that commits after later ones were copied', async () => {
    const [late, later] = await raise(2)
    await attempt(late!.alertId, 1, 500)
    await replication.runRound()
    const blocked = Promise.withResolvers<void>()
    const writing = Promise.withResolvers<void>()
    const slow = postgres.transaction(async (tx) => {
      // Nothing that a case counts, which would hold the lock of the tenant's alerts.
      await tx.query(
        `insert into alert_dispositions
           (tenant_id, alert_id, from_disposition, to_disposition, actor)
         values ($1, $2, 'REVIEWED', 'OPEN', 'slow')`,
        [tenantId, late!.alertId],
      )
      await tx.query(`update alerts set assignee = 'slow' where tenant_id = $1 and alert_id = $2`, [
        tenantId,
        late!.alertId,
      ])
      await tx.query(
        `insert into delivery_attempts
           (delivery_id, delivery_created_at, attempt, at, duration_ms, status)
         select delivery_id, created_at, 2, now(), 1, 503 from deliveries where alert_id = $1`,
        [late!.alertId],
      )
      await tx.query('update deliveries set attempts = 2 where alert_id = $1', [late!.alertId])
      writing.resolve()
      await blocked.promise
    })
    await writing.promise
    try {
      await dispose(later!.alertId, 'CONFIRMED')
      await attempt(later!.alertId, 1, 200)
      expect(await replication.runRound()).toBe('copied')
      await expectEqual()
      await raise(1)
      expect(await replication.runRound()).toBe('copied')
      // Rows that wait for the slow transaction are not copied again meanwhile.
      expect(await replication.runRound()).toBe('idle')
    } finally {
      blocked.resolve()
      await slow
    }
    expect(await replication.runRound()).toBe('copied')
    await expectEqual()
  })

  it('is correct again after an interruption at any point', async () => {
    const [one] = await raise(4)
    await replication.runRound()
    let steps = 0
    for (let broken = true, at = 1; broken; at++) {
      const [fresh, gone] = await raise(2)
      await dispose(one!.alertId, at % 2 === 0 ? 'OPEN' : 'CONFIRMED')
      await attempt(fresh!.alertId, 1, 500)
      await replication.runRound()
      await attempt(fresh!.alertId, 2, 200)
      await postgres.query('delete from alerts where alert_id = $1', [gone!.alertId])
      await raise(1)
      steps = 0
      const crash = <A extends unknown[], R>(of: (...given: A) => R, after: boolean) =>
        (async (...given: A) => {
          steps++
          if (steps === at && !after) throw new Error('killed')
          const result = await of(...given)
          if (steps === at) throw new Error('killed')
          return result
        }) as unknown as typeof of
      // Before one insert, then after one.
      const dying = {
        ...clickhouse,
        query: clickhouse.query.bind(clickhouse),
        command: clickhouse.command.bind(clickhouse),
        insert: crash(clickhouse.insert.bind(clickhouse), at % 2 === 0),
      } as unknown as Clickhouse
      broken = await makeReplication({ clickhouse: dying })
        .runRound()
        .then(
          () => false,
          () => true,
        )
      await replication.runRound()
      await expectEqual()
    }
    expect(steps).toBeGreaterThanOrEqual(4)
  })

  it('runs on one console at a time, and all of them together miss nothing', async () => {
    const many = [replication, makeReplication(), makeReplication()]
    await raise(50)
    const outcomes = await Promise.all(many.map((one) => one.runRound()))
    expect(outcomes.filter((one) => one === 'copied').length).toBeGreaterThanOrEqual(1)
    const writers = Array.from({ length: 10 }, async () => {
      const [alert] = await raise(5)
      await dispose(alert!.alertId, 'CONFIRMED')
      await attempt(alert!.alertId, 1, 200)
    })
    for (let at = 0; at < 10; at++) await Promise.all(many.map((one) => one.runRound()))
    await Promise.all(writers)
    await replication.runRound()
    expect((await expectEqual()).alerts).toHaveLength(100)
  })

  it('copies everything again when ClickHouse or Postgres was restored', async () => {
    await raise(5)
    await replication.runRound()
    for (const table of ['alerts_replica', 'deliveries_replica', 'replication_rounds']) {
      await clickhouse.command({ query: `truncate table ${table}` })
    }
    expect(await replication.runRound()).toBe('copied')
    await expectEqual()
    // Postgres has lost an alert and its record of the replica.
    await postgres.query(`delete from alerts where seq = 5`)
    await postgres.query('delete from replication_removals')
    await postgres.query(`update replication_state set round = 0, completed_round = 0`)
    expect(await replication.runRound()).toBe('copied')
    expect((await expectEqual()).alerts).toHaveLength(4)
    // A dump in a new cluster, whose transaction ids start again.
    await postgres.query(`update replication_state set cluster_id = 'another',
      replicated_snapshot = '9:9:'`)
    await raise(1)
    expect(await replication.runRound()).toBe('copied')
    expect((await expectEqual()).alerts).toHaveLength(5)
  })

  it('copies many rows in pages', async () => {
    const inPages = makeReplication({ pageRows: 20 })
    await raise(41)
    await inPages.runRound()
    const raised = await raise(21)
    await inPages.runRound()
    for (const { alertId } of raised) await attempt(alertId, 1, 500)
    await inPages.runRound()
    const { alerts, deliveries } = await expectEqual()
    expect([alerts.length, deliveries.length]).toEqual([62, 62])
  })

  it('shows the time up to which the replica is complete, in a view and as a metric', async () => {
    const beforeMs = Date.now()
    await replication.runRound()
    const result = await clickhouse.query({
      query: `select toUnixTimestamp64Milli(copied_at) from analytics.freshness`,
      format: 'JSONCompactEachRow',
    })
    const [[copiedAtMs]] = (await result.json<[number]>()) as [[number]]
    expect(Math.abs(copiedAtMs - beforeMs)).toBeLessThan(300_000)
    const text = await metrics.registry.metrics()
    const lag = /^di_replication_lag_seconds\S* ([\d.]+)$/m.exec(text)
    expect(Number(lag?.[1])).toBeLessThan(300)
  })
})

describe('an erasure', () => {
  it('removes replicated rows, and no later round restores them', async () => {
    const own = await raise(3, { deviceId: 'phone-Qx7canary', userId: 'eve' })
    const byEvent = await raise(1, { deviceId: 'tablet', userId: 'bob', eventId: 'evt_shared' })
    await raise(2, { deviceId: 'other' })
    await attempt(own[0]!.alertId, 1, 500)
    const named: LabelBody['subject'][] = [
      { device_id: 'phone-Qx7canary' },
      { session_id: 'of phone-Qx7canary' },
      { user_id: 'eve-too' },
      { event_id: 'evt_shared' },
      { user_id: 'phone-Qx7canary' },
      { device_id: 'other' },
    ]
    await label(named.map((subject) => ({ subject, label: 'fraud' })))
    await replication.runRound()
    const store = createErasureStore(clickhouse)
    const erase = async (subject: { kind: 'device' | 'user'; id: string }, eventIds: string[]) => {
      const whole = { tenantId, ...subject }
      const traces = await store.readTraces(whole, 1, null)
      const { eventHashes } = await hashesOf(eventIds)
      const found = { ...traces, eventIds, eventHashes, sessionIds: [`of ${subject.id}`] }
      const before = await store.countRows(found)
      const { sessionIds } = found
      await eraseAlerts(postgres, { subject: whole, eventIds, sessionIds })
      await store.eraseReplicas(found)
      const after = await store.countRows(found)
      return [before, after].map((of) => [
        of.alerts_replica,
        of.deliveries_replica,
        of.labels_replica,
      ])
    }
    expect(await erase({ kind: 'device', id: 'phone-Qx7canary' }, [])).toEqual([
      [3, 3, 2],
      [0, 0, 0],
    ])
    expect((await readCopy()).alerts).toHaveLength(3)
    expect(await erase({ kind: 'user', id: 'eve-too' }, ['evt_shared'])).toEqual([
      [1, 1, 2],
      [0, 0, 0],
    ])
    await replication.runRound()
    expect((await expectEqual()).labels).toHaveLength(2)
    expect((await readCopy()).alerts).toHaveLength(2)
    const raw = await clickhouse.query({
      query: `select count() from alerts_replica where device_id in ('phone-Qx7canary', 'tablet')`,
      format: 'JSONCompactEachRow',
    })
    expect(await raw.json()).toEqual([[0]])
    expect(byEvent).toHaveLength(1)
    // The same device again is a new alert with the same id.
    await raiseAlerts(postgres, own, Date.now)
    await replication.runRound()
    expect((await expectEqual()).alerts).toHaveLength(5)
  })

  async function hashesOf(eventIds: string[]): Promise<{ eventHashes: string[] }> {
    const result = await clickhouse.query({
      query: `select toString(reinterpretAsUInt64(SHA256(id))) from
        (select arrayJoin({ids:Array(String)}) as id)`,
      query_params: { ids: eventIds },
      format: 'JSONCompactEachRow',
    })
    return { eventHashes: (await result.json<[string]>()).map(([one]) => one) }
  }
})
