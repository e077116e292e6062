// The alert store on a real PostgreSQL: raising, listing, counting and dispositions, also with
// concurrent writers.
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type AlertFilter,
  countedBys,
  type FilterName,
  listGiven,
  unassigned,
} from '#shared/core/alerts/alert-filters.ts'
import type { Alert } from '#shared/core/alerts/alert-schema.ts'
import { dispositions } from '#shared/core/alerts/dispositions.ts'
import { toDeliveryId } from '#shared/core/base/ids.ts'
import { dayMs, hourMs } from '#shared/core/base/instants.ts'
import { severities } from '#shared/core/scoring/score.ts'
import type { AlertQuery } from '#shared/io/alerts/alert-query.ts'
import { type AlertStore, createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { addNote, setAssignee } from '#shared/io/alerts/alert-work-store.ts'
import { countAlertsBy, listAlerts, toListSql } from '#shared/io/alerts/list-alerts.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { createPostgres, type Postgres, type Queryable } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import {
  hostingConnection,
  isWithin,
  plainConnection,
  toColumns,
  unknownConnection,
} from '../../support/telemetry/connections.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'

let server: TestPostgres
let postgres: Postgres
let store: AlertStore

beforeAll(async () => {
  server = await startPostgres()
  const url = await server.createMigratedDatabase()
  const log = createLog('test', 'silent')
  postgres = createPostgres(url, { role: 'test', log, connectionsMax: 12, statementTimeoutMs: 0 })
  store = createAlertStore(postgres)
})

afterAll(async () => {
  await postgres?.close()
  await server?.stop()
})

let tenants = 0

/** A fresh tenant, so that tests do not see alerts of other tests. */
async function addTenant(): Promise<string> {
  const tenantId = `tenant-${++tenants}`
  await insertBareTenants(postgres, [tenantId])
  return tenantId
}

const everything = (tenantId: string): AlertQuery => ({ tenantId, limit: 500, after: null })

/** Every alert of a query, page by page. */
async function walk(query: AlertQuery): Promise<Alert[]> {
  const alerts: Alert[] = []
  for (let after = query.after; ; ) {
    const page = await store.listAlerts({ ...query, after })
    alerts.push(...page.alerts)
    if (page.next === null) return alerts
    after = page.next
  }
}

/** Every invariant between a tenant's alerts, sequence and counters. */
async function expectConsistent(tenantId: string): Promise<void> {
  const alerts = (await walk(everything(tenantId))).reverse()
  expect(alerts.map((alert) => alert.seq)).toEqual(alerts.map((_, index) => index + 1))
  for (const table of ['alert_counts_by_day', 'alert_counts_by_hour']) {
    const { rows } = await postgres.query(
      `select sum(alert_count)::bigint as n, min(alert_count) >= 0 as natural from ${table} where tenant_id = $1`,
      [tenantId],
    )
    expect(rows).toEqual([{ n: alerts.length, natural: true }])
  }
  const stray = await postgres.query(
    `select 1 from alerts full join deliveries using (tenant_id, alert_id)
     where tenant_id = $1 and (seq is null or delivery_id is null)`,
    [tenantId],
  )
  expect(stray.rows).toEqual([])
}

describe('raising', () => {
  test('uses the clock of Postgres, with any clock of the scorer', async () => {
    const tenantId = await addTenant()
    const startedMs = Date.now()
    const clock = vi.spyOn(Date, 'now').mockReturnValue(startedMs + 86_400_000)
    try {
      await raiseAlerts(postgres, [makeAlertCandidate({ tenantId, sessionId: 's' })])
    } finally {
      clock.mockRestore()
    }
    const { alerts } = await store.listAlerts(everything(tenantId))
    const datedMs = Date.parse(alerts[0]!.created_at)
    expect(datedMs).toBeGreaterThanOrEqual(startedMs - 1_000)
    expect(datedMs).toBeLessThan(startedMs + 60_000)
  })

  test('gives every alert a sequence, a time and a delivery with the API’s bytes', async () => {
    const tenantId = await addTenant()
    const candidates = ['s1', 's2', 's3'].map((sessionId) =>
      makeAlertCandidate({ tenantId, sessionId, userId: 'ünï', riskScore: 80, action: 'BLOCK' }),
    )
    const nowMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
    const outcome = await store.raiseAlerts(candidates, () => nowMs)
    expect(outcome).toMatchObject({ existing: 0, unknownTenants: [] })
    expect(outcome.raised.map((one) => one.alertId)).toEqual(
      candidates.map((candidate) => candidate.alertId).sort(),
    )
    const { alerts, total, next } = await store.listAlerts(everything(tenantId))
    expect({ total, next }).toEqual({ total: 3, next: null })
    expect(alerts.map((alert) => alert.seq)).toEqual([3, 2, 1])
    for (const alert of alerts) {
      expect(alert).toMatchObject({
        disposition: 'OPEN',
        created_at: '2026-01-02T03:04:05.678Z',
        entity: { user: { user_id: 'ünï' } },
        decision: { action: 'BLOCK', severity: 'CRITICAL', risk_score: 80 },
      })
      const { rows } = await postgres.query<{ body: Buffer }>(
        `select body, state, attempts, due_at <= now() as due from deliveries
         where delivery_id = $1 and tenant_id = $2`,
        [toDeliveryId(alert.alert_id), tenantId],
      )
      expect(rows[0]).toMatchObject({ state: 'pending', attempts: 0, due: true })
      expect(JSON.parse(rows[0]!.body.toString('utf8'))).toEqual(alert)
    }
  })

  test('changes nothing when it is repeated', async () => {
    const tenantId = await addTenant()
    const candidates = ['s1', 's2'].map((sessionId) => makeAlertCandidate({ tenantId, sessionId }))
    await store.raiseAlerts(candidates.slice(0, 1), Date.now)
    const before = await store.listAlerts(everything(tenantId))
    const again = await store.raiseAlerts([...candidates, ...candidates], Date.now)
    expect(again).toMatchObject({ existing: 1, raised: [{ alertId: candidates[1]!.alertId }] })
    expect(await store.raiseAlerts(candidates, Date.now)).toMatchObject({ existing: 2, raised: [] })
    const { alerts } = await store.listAlerts(everything(tenantId))
    expect(alerts[1]).toEqual(before.alerts[0])
    await expectConsistent(tenantId)
  })

  test('keeps the first of several candidates of one alert', async () => {
    const tenantId = await addTenant()
    const candidates = [50, 70, 60].map((riskScore) =>
      makeAlertCandidate({ tenantId, sessionId: 's', riskScore }),
    )
    expect((await store.raiseAlerts(candidates, Date.now)).raised).toHaveLength(1)
    const { alerts } = await store.listAlerts(everything(tenantId))
    expect(alerts.map((alert) => alert.decision.risk_score)).toEqual([50])
  })

  test('omits and reports tenants that do not exist', async () => {
    const tenantId = await addTenant()
    const outcome = await store.raiseAlerts(
      ['gone-1', tenantId, 'gone-2', 'gone-1'].map((id, index) =>
        makeAlertCandidate({ tenantId: id, sessionId: `s${index}` }),
      ),
      Date.now,
    )
    expect(outcome.raised).toHaveLength(1)
    expect(outcome.unknownTenants.sort()).toEqual(['gone-1', 'gone-2'])
    const none = await store.raiseAlerts([], Date.now)
    expect(none).toEqual({ raised: [], existing: 0, unknownTenants: [] })
  })

  test('survives a concurrent removal of the tenant, and leaves no rows', async () => {
    const kept = await addTenant()
    for (let round = 0; round < 5; round++) {
      const doomed = await addTenant()
      await Promise.all([
        ...[0, 1, 2].map((writer) =>
          store.raiseAlerts(
            [kept, doomed].map((tenantId) =>
              makeAlertCandidate({ tenantId, sessionId: `r${round}w${writer}` }),
            ),
            Date.now,
          ),
        ),
        // A manual removal of a tenant may lose to a deadlock, which a transaction survives.
        postgres.transaction((tx) =>
          tx.query('delete from tenants where tenant_id = $1', [doomed]),
        ),
      ])
      expect((await store.listAlerts(everything(doomed))).total).toBe(0)
    }
    await expectConsistent(kept)
    expect((await store.listAlerts(everything(kept))).total).toBe(15)
  })

  test('leaves no gap and no rows when it fails', async () => {
    const [good, bad] = [await addTenant(), await addTenant()]
    const impossible = makeAlertCandidate({ tenantId: bad, sessionId: 's', riskScore: 101 })
    const fine = makeAlertCandidate({ tenantId: good, sessionId: 's' })
    await expect(store.raiseAlerts([fine, impossible], Date.now)).rejects.toThrow(/risk_score/)
    for (const tenantId of [good, bad]) {
      expect(await store.listAlerts(everything(tenantId))).toMatchObject({ total: 0, alerts: [] })
      await store.raiseAlerts([makeAlertCandidate({ tenantId, sessionId: 't' })], Date.now)
      await expectConsistent(tenantId)
    }
  })

  test('never dates an alert before an earlier one, for any clock', async () => {
    const tenantId = await addTenant()
    const clock = [5_000, 5_000, 3_000, 9_000, 8_999, -1].map((ms) => Date.UTC(2026, 0, 1) + ms)
    for (const [index, nowMs] of clock.entries()) {
      const sessions = [`a${index}`, `b${index}`]
      await store.raiseAlerts(
        sessions.map((sessionId) => makeAlertCandidate({ tenantId, sessionId })),
        () => nowMs,
      )
    }
    const alerts = await walk({ ...everything(tenantId), limit: 1 })
    expect(alerts.map((alert) => alert.seq)).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
    const dates = alerts.map((alert) => alert.created_at)
    expect(dates).toEqual([...dates].sort().reverse())
  })

  test('by concurrent writers creates each alert once, without gaps and deadlocks', async () => {
    const tenantIds = await Promise.all([1, 2, 3, 4].map(addTenant))
    const candidates = Array.from({ length: 400 }, (_, index) =>
      makeAlertCandidate({
        tenantId: tenantIds[index % 4]!,
        sessionId: `s${index}`,
        action: index % 3 === 0 ? 'BLOCK' : 'REVIEW',
      }),
    )
    // Every writer goes through all candidates in its own order and batches.
    const writers = [1, 2, 3, 5, 7, 11].map(async (step) => {
      let raised = 0
      for (let at = 0; at < candidates.length; at += 25) {
        const batch = Array.from(
          { length: 25 },
          (_, index) => candidates[((at + index) * (step * 2 + 1)) % candidates.length]!,
        )
        const outcome = await store.raiseAlerts(batch, Date.now)
        raised += outcome.raised.length
      }
      return raised
    })
    const raised = await Promise.all(writers)
    expect(raised.reduce((a, b) => a + b, 0)).toBe(400)
    for (const tenantId of tenantIds) {
      await expectConsistent(tenantId)
      expect((await store.listAlerts(everything(tenantId))).total).toBe(100)
    }
  })

  test('is seen by a reader of after_seq without a gap and without a repeat', async () => {
    const tenantId = await addTenant()
    const writers = 6
    const batches = 15
    let ended = 0
    const write = async (writer: number) => {
      for (let batch = 0; batch < batches; batch++) {
        const candidates = [0, 1, 2].map((one) =>
          makeAlertCandidate({ tenantId, sessionId: `w${writer}b${batch}n${one}` }),
        )
        await store.raiseAlerts(candidates, Date.now)
      }
      ended++
    }
    const read = async () => {
      const seen: number[] = []
      for (let wasEnded = false; ; ) {
        const afterSeq = seen.at(-1) ?? 0
        const page = await store.listAlerts({ ...everything(tenantId), limit: 7, afterSeq })
        seen.push(...page.alerts.map((alert) => alert.seq))
        // More than there are: alerts that come twice.
        if (seen.length > writers * batches * 3) return seen
        if (page.alerts.length === 0 && wasEnded) return seen
        wasEnded = ended === writers
      }
    }
    const all = Array.from({ length: writers * batches * 3 }, (_, index) => index + 1)
    const [seen, again] = await Promise.all([
      read(),
      read(),
      ...Array.from({ length: writers }, (_, writer) => write(writer)),
    ])
    expect(seen).toEqual(all)
    expect(again).toEqual(all)
  })

  test('keeps two tenants with the same devices and sessions apart', async () => {
    const [a, b] = [await addTenant(), await addTenant()]
    const candidates = [a, b].map((tenantId) => makeAlertCandidate({ tenantId, sessionId: 'same' }))
    await store.raiseAlerts(candidates, Date.now)
    const { alertId } = candidates[0]!
    await store.setDisposition({ alertId, disposition: 'CONFIRMED', note: null, actor: 'eve' })
    expect(await store.findAlert({ alertId, tenantId: b })).toBeNull()
    const query = { deviceId: 'device-1', limit: 10, after: null }
    const ofB = await store.listAlerts({ tenantId: b, ...query })
    expect(ofB).toMatchObject({ total: 1, alerts: [{ seq: 1, disposition: 'OPEN' }] })
    expect(ofB.alerts[0]!.alert_id).not.toBe(alertId)
  })
})

describe('dispositions', () => {
  const change = { disposition: 'CONFIRMED', note: 'seen', actor: 'ada' } as const

  test('change the counters and record author, time, old and new value and note', async () => {
    const tenantId = await addTenant()
    const { alertId } = makeAlertCandidate({ tenantId, sessionId: 's' })
    await store.raiseAlerts([makeAlertCandidate({ tenantId, sessionId: 's' })], Date.now)
    const alert = await store.setDisposition({ alertId, ...change })
    expect(alert).toEqual((await store.findAlert({ alertId }))!)
    expect(alert).toMatchObject({ disposition: 'CONFIRMED', seq: 1 })
    for (const disposition of dispositions) {
      const total = disposition === 'CONFIRMED' ? 1 : 0
      expect(
        await store.listAlerts({ ...everything(tenantId), filter: { disposition: [disposition] } }),
      ).toMatchObject({
        total,
      })
    }
    const history = await postgres.query(
      `select from_disposition, to_disposition, actor, note, at > now() - interval '1 minute' as now
       from alert_dispositions where tenant_id = $1`,
      [tenantId],
    )
    expect(history.rows).toEqual([
      {
        from_disposition: 'OPEN',
        to_disposition: 'CONFIRMED',
        actor: 'ada',
        note: 'seen',
        now: true,
      },
    ])
    const audit = await postgres.query(
      'select actor, action, before, after from audit_log where tenant_id = $1',
      [tenantId],
    )
    expect(audit.rows).toEqual([
      {
        actor: 'ada',
        action: 'alert.dispositioned',
        before: { alert_id: alertId, disposition: 'OPEN' },
        after: { alert_id: alertId, disposition: 'CONFIRMED', note: 'seen' },
      },
    ])
  })

  test('that are already set change and record nothing', async () => {
    const tenantId = await addTenant()
    const candidate = makeAlertCandidate({ tenantId, sessionId: 's' })
    await store.raiseAlerts([candidate], Date.now)
    for (let time = 0; time < 3; time++) {
      await store.setDisposition({ alertId: candidate.alertId, ...change })
    }
    const { rows } = await postgres.query('select 1 from alert_dispositions where tenant_id = $1', [
      tenantId,
    ])
    expect(rows).toHaveLength(1)
    await expectConsistent(tenantId)
  })

  test('return null for an alert that is unknown or belongs to another tenant', async () => {
    const [tenantId, other] = [await addTenant(), await addTenant()]
    const candidate = makeAlertCandidate({ tenantId, sessionId: 's' })
    await store.raiseAlerts([candidate], Date.now)
    for (const alertId of ['alr_none', '', 'alr_\u0000', '\u{1f4f1}']) {
      expect(await store.setDisposition({ alertId, ...change })).toBeNull()
      expect(await store.findAlert({ alertId })).toBeNull()
    }
    const { alertId } = candidate
    expect(await store.setDisposition({ alertId, scope: [other], ...change })).toBeNull()
    expect(await store.findAlert({ alertId })).toMatchObject({ disposition: 'OPEN' })
  })
})

describe('what people change', () => {
  const insertOperator = (id: string, email: string) =>
    postgres.query(
      `insert into operators (operator_id, email, name, role, password_hash, created_at, created_by)
       values ($1, $2, 'Ada', 'analyst', '$argon2id$', now(), 'test')`,
      [id, email],
    )

  async function raiseOne(tenantId: string, sessionId = 's'): Promise<Alert> {
    await store.raiseAlerts([makeAlertCandidate({ tenantId, sessionId })], Date.now)
    const filter = { session_id: sessionId }
    const page = await store.listAlerts({ ...everything(tenantId), filter })
    return page.alerts[0]!
  }

  test('raises updated_at with every change, whatever the clock does, and names people by ids', async () => {
    const tenantId = await addTenant()
    const ids = { ada: `opr_${'a'.repeat(22)}`, bo: `opr_${'b'.repeat(22)}` }
    await insertOperator(ids.ada, 'ada@house.example')
    await insertOperator(ids.bo, 'bo@house.example')
    const { alert_id: alertId, created_at } = await raiseOne(tenantId)
    // As if the clock had been an hour ahead: no change may be before it.
    const ahead = new Date(Date.now() + hourMs)
    await postgres.query('update alerts set created_at = $2 where alert_id = $1', [alertId, ahead])
    const of = { alertId, scope: [tenantId] as const }
    const detail = async () => (await store.findAlertDetail({ tenantId, alertId }))!
    const times = [(await detail()).updated_at]
    expect(times[0]).toBe(ahead.toISOString())
    expect(times[0]! > created_at).toBe(true)
    const changes = [
      () =>
        setAssignee(postgres, { ...of, assignee: 'bo@house.example', actor: 'ada@house.example' }),
      () => addNote(postgres, { ...of, note: 'asked', actor: 'bo@house.example', most: 2 }),
      () =>
        store.setDisposition({
          ...of,
          disposition: 'CONFIRMED',
          note: 'paid back',
          actor: 'api-key:crm',
        }),
      () => store.setDisposition({ ...of, disposition: 'OPEN', note: null, actor: 'admin' }),
      () => setAssignee(postgres, { ...of, assignee: null, actor: 'gone@house.example' }),
    ]
    for (const change of changes) {
      await change()
      const { alerts } = await store.listAlerts(everything(tenantId))
      const found = await detail()
      expect(alerts[0]!.updated_at).toBe(found.updated_at)
      times.push(found.updated_at)
    }
    expect(times).toEqual([...new Set(times)].sort())
    const operator = (id: string | null) => ({ kind: 'operator', id })
    const found = await detail()
    expect(found).toMatchObject({ disposition: 'OPEN', assignee: null })
    expect(found.details.history).toEqual([
      {
        at: times[3],
        by: { kind: 'api_key', id: 'crm' },
        from: 'OPEN',
        to: 'CONFIRMED',
        note: 'paid back',
      },
      { at: times[4], by: operator(null), from: 'CONFIRMED', to: 'OPEN', note: null },
    ])
    expect(found.details.assignments).toEqual([
      { at: times[1], by: operator(ids.ada), from: null, to: operator(ids.bo) },
      { at: times[5], by: operator(null), from: operator(ids.bo), to: null },
    ])
    expect(found.details.notes).toEqual([{ at: times[2], by: operator(ids.bo), note: 'asked' }])
    expect(JSON.stringify(found)).not.toContain('house.example')
    const updated = { ...everything(tenantId), filter: { updated_after: Date.parse(times[5]!) } }
    expect((await store.listAlerts(updated)).total).toBe(1)
    const later = { ...everything(tenantId), filter: { updated_after: Date.parse(times[5]!) + 1 } }
    expect((await store.listAlerts(later)).total).toBe(0)
    // What changes nothing is no change: the same disposition, and a note that does not fit.
    await store.setDisposition({ ...of, disposition: 'OPEN', note: null, actor: 'admin' })
    await addNote(postgres, { ...of, note: 'more', actor: 'bo@house.example', most: 1 })
    expect((await detail()).updated_at).toBe(times[5])
  })

  test('shows the newest changes of an alert that has many', async () => {
    const tenantId = await addTenant()
    const { alert_id: alertId } = await raiseOne(tenantId)
    await postgres.query(
      `insert into alert_dispositions
         (tenant_id, alert_id, from_disposition, to_disposition, actor, note)
       select $1, $2, 'OPEN', 'REVIEWED', 'system', n::text from generate_series(1, 205) as n
       order by n + 0`,
      [tenantId, alertId],
    )
    const { history } = (await store.findAlertDetail({ tenantId, alertId }))!.details
    expect(history.map(({ note }) => note)).toEqual(
      Array.from({ length: 200 }, (_, index) => String(index + 6)),
    )
    expect(await store.findAlertDetail({ tenantId: 'another', alertId })).toBeNull()
    expect(await store.findAlertDetail({ tenantId, alertId: 'alr_\u0000' })).toBeNull()
  })
})

describe('totals and cursors during concurrent writes', () => {
  /** Raises alerts and sets dispositions until it is stopped; resolves with the number of each. */
  function pour(tenantId: string, rounds: number): Promise<void>[] {
    const raise = async (writer: number) => {
      for (let round = 0; round < rounds; round++) {
        const candidates = [0, 1, 2].map((one) =>
          makeAlertCandidate({
            tenantId,
            sessionId: `w${writer}r${round}n${one}`,
            action: one === 1 ? 'BLOCK' : 'REVIEW',
          }),
        )
        await store.raiseAlerts(candidates, Date.now)
      }
    }
    const judge = async (operator: number) => {
      for (let round = 0; round < rounds; round++) {
        const { alerts } = await store.listAlerts({ ...everything(tenantId), limit: 50 })
        const alert = alerts[(round * 7 + operator) % Math.max(1, alerts.length)]
        if (alert === undefined) continue
        const disposition = dispositions[(round + operator) % 4]!
        await store.setDisposition({
          alertId: alert.alert_id,
          disposition,
          note: null,
          actor: `op${operator}`,
        })
      }
    }
    return [raise(1), raise(2), judge(1), judge(2)]
  }

  test('a page and its total come from one snapshot, and every total equals count(*)', async () => {
    const tenantId = await addTenant()
    const writers = pour(tenantId, 40)
    let writing = true
    const all = Promise.all(writers).finally(() => {
      writing = false
    })
    let compared = 0
    for (; writing || compared === 0; compared++) {
      const page = await store.listAlerts(everything(tenantId))
      expect(page.total).toBe(page.alerts.length)
      const kind = compared % 4
      const query = {
        ...everything(tenantId),
        filter: {
          disposition: kind & 1 ? [dispositions[compared % 3]!] : undefined,
          decision: kind & 2 ? (['REVIEW'] as const) : undefined,
          from: compared % 5 === 0 ? Date.now() - 200 : undefined,
        },
      }
      const { total, count } = await countBoth(query)
      expect(total).toBe(count)
    }
    await all
    expect(compared).toBeGreaterThan(5)
    await expectConsistent(tenantId)
  })

  /** The store's total and count(*) in one snapshot. */
  async function countBoth(query: AlertQuery): Promise<{ total: number; count: number }> {
    return await postgres.transaction(async (tx: Queryable) => {
      await tx.query('set transaction isolation level repeatable read')
      const { total } = await listAlerts(tx, query)
      const { filter = {} } = query
      const { rows } = await tx.query<{ count: number }>(
        `select count(*) as count from alerts where tenant_id = $1
         and ($2::text[] is null or disposition = any($2))
         and ($3::text[] is null or action = any($3))
         and ($4::timestamptz is null or created_at >= $4)`,
        [
          query.tenantId,
          filter.disposition ?? null,
          filter.decision ?? null,
          filter.from === undefined ? null : new Date(filter.from).toISOString(),
        ],
      )
      return { total, count: rows[0]!.count }
    })
  }

  test('a cursor continues exactly after its row: no duplicates, gaps or new rows', async () => {
    const tenantId = await addTenant()
    const candidates = Array.from({ length: 60 }, (_, n) =>
      makeAlertCandidate({ tenantId, sessionId: `old${n}` }),
    )
    for (let at = 0; at < 60; at += 20) {
      await store.raiseAlerts(candidates.slice(at, at + 20), Date.now)
    }
    const before = await walk(everything(tenantId))
    const writers = pour(tenantId, 15)
    const seen = await walk({ ...everything(tenantId), limit: 4 })
    await Promise.all(writers)
    const oldOnes = seen.filter((alert) => alert.seq <= 60)
    expect(oldOnes.map((alert) => alert.alert_id)).toEqual(before.map((alert) => alert.alert_id))
    const seqs = seen.map((alert) => alert.seq)
    expect(seqs).toEqual(seqs.map((_, index) => seqs[0]! - index))
  })
})

describe('a list', () => {
  const startMs = Date.UTC(2026, 1, 27, 21, 58, 0)
  const decisions = ['REVIEW', 'BLOCK'] as const
  const someFlags = ['ROOTED', 'EMULATOR', 'VPN_SUSPECTED', 'HIGH_VELOCITY'] as const
  let tenantId: string
  let model: Alert[]
  const connections = [hostingConnection, plainConnection, unknownConnection].map(toColumns)
  let assignees: Map<string, string>
  let caseIds = new Map<string, string>()

  /** 240 alerts of a few devices over some days, dense around hours and midnights. */
  beforeAll(async () => {
    tenantId = await addTenant()
    const steps = [1, 400, 59_000, 61_000, 1_800_000, hourMs, 5 * hourMs, dayMs - 1]
    let nowMs = startMs
    for (let batch = 0; batch < 80; batch++) {
      nowMs += steps[(batch * 5) % steps.length]!
      const candidates = [0, 1, 2].map((one) =>
        makeAlertCandidate({
          tenantId,
          sessionId: `b${batch}n${one}`,
          deviceId: `d${(batch + one) % 5}/ü`,
          userId: one === 0 ? null : `u${batch % 4}`,
          action: decisions[(batch + one * one) % 2]!,
          riskScore: 30 + ((batch * 3 + one) % 71),
          platform: [null, 'android', 'ios'][(batch + one) % 3]!,
          sdkVersion: [null, '4.2.0', '4.3.0'][(batch * 2 + one) % 3]!,
          ...(connections[batch % 4] === undefined ? {} : { connection: connections[batch % 4]! }),
          reasons: someFlags
            .filter((_, at) => (batch * 3 + one) % (at + 2) === 0)
            .map((code) => ({ code, weight: 1, evidence: {} })),
        }),
      )
      await store.raiseAlerts(candidates, () => nowMs)
    }
    for (const [index, alert] of (await walk(everything(tenantId))).entries()) {
      const disposition = dispositions[index % 7] ?? 'OPEN'
      await store.setDisposition({
        alertId: alert.alert_id,
        disposition,
        note: null,
        actor: 'op',
      })
    }
    // Changes are spread over the same days as the alerts, so that time filters cut through both.
    await postgres.query(
      `update alerts set changed_at = created_at + seq % 9 * interval '7 hours'
       where tenant_id = $1 and changed_at is not null`,
      [tenantId],
    )
    const assigned = await postgres.query<{ alert_id: string }>(
      `update alerts set assignee = 'ada@example.com' where tenant_id = $1 and seq % 5 = 2
       returning alert_id`,
      [tenantId],
    )
    assignees = new Map(assigned.rows.map((row) => [row.alert_id, 'ada@example.com']))
    expect(assignees.size).toBe(48)
    const placed = await postgres.query<{ alert_id: string; case_id: string }>(
      'select alert_id, case_id from alerts where tenant_id = $1',
      [tenantId],
    )
    caseIds = new Map(placed.rows.map((row) => [row.alert_id, row.case_id]))
    model = await walk(everything(tenantId))
    expect(model).toHaveLength(240)
    const changed = model.filter((alert) => alert.updated_at > alert.created_at)
    expect(changed.length).toBeGreaterThan(50)
  })

  /** Whether an alert has a filter's value. */
  const tests: {
    [Name in FilterName]: (alert: Alert, value: NonNullable<AlertFilter[Name]>) => boolean
  } = {
    disposition: (alert, some) => some.includes(alert.disposition),
    decision: (alert, some) => some.includes(alert.decision.action),
    severity: (alert, some) => some.includes(alert.decision.severity),
    flag: (alert, some) => some.some((code) => alert.flags.includes(code)),
    min_score: (alert, least) => alert.decision.risk_score >= least,
    device_id: (alert, id) => alert.entity.device.device_id === id,
    user_id: (alert, id) => alert.entity.user?.user_id === id,
    session_id: (alert, id) => alert.entity.session.session_id === id,
    from: (alert, ms) => Date.parse(alert.created_at) >= ms,
    to: (alert, ms) => Date.parse(alert.created_at) < ms,
    platform: (alert, platform) => alert.platform === platform,
    sdk_version: (alert, version) => alert.sdk_version === version,
    country: ({ connection }, country) => connection?.country === country,
    asn: ({ connection }, asn) => connection?.asn === asn,
    network: ({ connection }, network) =>
      connection !== null && isWithin(connection.network, network),
    updated_after: (alert, ms) => Date.parse(alert.updated_at) >= ms,
    case_id: (alert, id) => caseIds.get(alert.alert_id) === id,
    assignee: (alert, email) => (assignees.get(alert.alert_id) ?? 'none') === email,
  }
  const matches = (alert: Alert, filter: AlertFilter): boolean =>
    listGiven(filter).every(({ name, value }) => tests[name](alert, value as never))

  const maybe = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined })
  const rarely = <T>(values: fc.Arbitrary<T>) =>
    fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: values })

  test('equals a list in memory, for every filter, pair, range, page size and cursor', async () => {
    // Instants of alerts, one millisecond before or after them, hours, midnights, and distant ones.
    const instant = fc.oneof(
      fc
        .tuple(fc.nat(239), fc.integer({ min: -1, max: 1 }))
        .map(([n, by]) => Date.parse(model[n]!.created_at) + by),
      fc
        .tuple(fc.integer({ min: -1, max: 500 }), fc.integer({ min: -1, max: 1 }))
        .map(([hours, by]) => Math.ceil(startMs / hourMs) * hourMs + hours * hourMs + by),
      fc.constantFrom(-62_167_219_200_000, -1, 0, Date.UTC(2026, 2, 1), 253_402_300_800_000),
    )
    // Every filter of the table is drawn: another one does not compile until it is here.
    const drawn: { [Name in FilterName]: fc.Arbitrary<AlertFilter[Name]> } = {
      disposition: maybe(fc.subarray([...dispositions], { minLength: 1 })),
      decision: maybe(fc.subarray([...decisions], { minLength: 1 })),
      device_id: maybe(fc.constantFrom('d0/ü', 'd3/ü', 'nobody')),
      user_id: rarely(fc.constantFrom('u0', 'u3', 'nobody')),
      session_id: rarely(fc.constantFrom('b0n0', 'b79n2', 'nobody')),
      flag: rarely(fc.subarray([...someFlags, 'MALWARE_PRESENT'], { minLength: 1 })),
      severity: rarely(fc.subarray([...severities], { minLength: 1 })),
      min_score: rarely(fc.integer({ min: 0, max: 100 })),
      assignee: rarely(fc.constantFrom(unassigned, 'ada@example.com', 'nobody@example.com')),
      case_id: rarely(fc.constantFrom(...new Set(caseIds.values()), 'cas_nobody')),
      platform: rarely(fc.constantFrom('android', 'ios', 'tizen')),
      sdk_version: rarely(fc.constantFrom('4.2.0', '4.3.0', '5.0.0')),
      country: rarely(fc.constantFrom('DE', 'GB', 'FR')),
      asn: rarely(fc.constantFrom(64_500, 64_501)),
      network: rarely(
        fc.constantFrom(
          ...['203.0.113.0/24', '203.0.112.0/20', '0.0.0.0/0', '203.0.0.0/24', '::/0'],
          ...['2001:db8:7::/48', '2001:db8::/32', '2001:db8:8::/48'],
        ),
      ),
      updated_after: rarely(instant),
      from: maybe(instant),
      to: maybe(instant),
    }
    const query = fc.record({
      filter: fc.record(drawn),
      limit: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.constantFrom(50, 51, 200, 500)),
      start: maybe(fc.nat(239)),
      afterSeq: fc.nat(241),
    })
    await fc.assert(
      fc.asyncProperty(query, async ({ start, afterSeq, filter, limit }) => {
        const last = start === undefined ? undefined : model[start]!
        const after =
          last === undefined
            ? null
            : { createdAtMs: Date.parse(last.created_at), alertId: last.alert_id }
        const page = await store.listAlerts({ tenantId, filter, limit, after })
        const matching = model.filter((alert) => matches(alert, filter))
        const rest = last === undefined ? matching : matching.filter((one) => one.seq < last.seq)
        expect(page.total).toBe(matching.length)
        expect(page.alerts).toEqual(rest.slice(0, limit))
        const end = page.alerts.at(-1)
        const next =
          rest.length > limit && end !== undefined
            ? { createdAtMs: Date.parse(end.created_at), alertId: end.alert_id }
            : null
        expect(page.next).toEqual(next)
        const { total: _, ...uncounted } = page
        expect(await store.listUncounted({ tenantId, filter, limit, after })).toEqual(uncounted)
        const bySeq = await store.listAlerts({ tenantId, filter, limit, after: null, afterSeq })
        const later = matching.filter((one) => one.seq > afterSeq).reverse()
        expect(bySeq.alerts).toEqual(later.slice(0, limit))
        expect(bySeq.total).toBe(matching.length)
        // Of a menu that chooses a value: what the list has once it is chosen.
        const counted = countedBys[limit % countedBys.length]!
        const others = model.filter((alert) => matches(alert, { ...filter, [counted]: undefined }))
        const lengths = new Map<string, number>()
        for (const alert of others) {
          for (const one of counted === 'flag' ? alert.flags : [alert.sdk_version ?? null]) {
            if (one !== null) lengths.set(one, (lengths.get(one) ?? 0) + 1)
          }
        }
        const counts = await countAlertsBy(postgres, { tenantId, filter, by: counted })
        expect(new Map(counts.map(({ value, alerts }) => [value, alerts]))).toEqual(lengths)
        expect(counts).toEqual(counts.toSorted((a, b) => b.alerts - a.alerts))
      }),
      { numRuns: 200, verbose: true },
    )
  })
})

describe('a list of a large tenant', () => {
  const size = 40_000
  let tenantId: string

  beforeAll(async () => {
    tenantId = await addTenant()
    await fill(tenantId)
  })

  /** The rows that the store would write, but in one statement each. */
  async function fill(tenantId: string): Promise<void> {
    await postgres.query(
      `insert into alerts (tenant_id, alert_id, seq, device_id, session_id, event_id, action,
         risk_score, rasp_score, reasons, policy_version, disposition, created_at, user_id,
         connection_network, connection_country, connection_asn, changed_at)
       select $1, 'alr_' || md5($1 || n::text), n, 'd' || n % 1000, 's' || n, 'e' || n,
         case when n % 10 = 0 then 'BLOCK' else 'REVIEW' end, 30 + n % 71, 50,
         jsonb_build_array(jsonb_build_object('code', case when n % 1000 = 1 then 'EMULATOR'
           else 'ROOTED' end, 'weight', 50, 'evidence', '{"signals": ["root.su_binary"]}'::jsonb)),
         1, case when n % 4000 = 1 then 'CONFIRMED' else 'OPEN' end,
         timestamptz '2026-01-01 00:00:00Z' + n * interval '1 minute', 'u' || n % 1000,
         format('198.%s.%s.0/24', 18 + n / 256 % 2, n % 256)::cidr,
         (array['DE', 'GB', 'FR'])[1 + n % 3], 64500 + n % 400,
         case when n % 4000 = 1
           then timestamptz '2026-01-01 00:00:00Z' + n * interval '1 minute' + interval '1 day'
         end
       from generate_series(1, ${size}) as n`,
      [tenantId],
    )
    for (const [table, column, unit] of [
      ['alert_counts_by_day', 'day', `(created_at at time zone 'UTC')::date`],
      ['alert_counts_by_hour', 'hour', `date_bin('1 hour', created_at, 'epoch')`],
    ]) {
      await postgres.query(
        `insert into ${table} (tenant_id, ${column}, disposition, decision, alert_count)
         select tenant_id, ${unit}, disposition, action, count(*) from alerts
         where tenant_id = $1 group by 1, 2, 3, 4`,
        [tenantId],
      )
    }
    await postgres.query('vacuum analyze alerts')
    await postgres.query('analyze alert_counts_by_day, alert_counts_by_hour')
  }

  test('reads at most a page and its counters, with any filters and at any depth', async () => {
    const deep = { createdAtMs: Date.UTC(2026, 0, 9), alertId: 'alr_m' }
    const filters: AlertFilter[] = [
      {},
      { disposition: ['OPEN'] },
      { disposition: ['CONFIRMED'] },
      { disposition: ['CONFIRMED', 'REVIEWED'] },
      { decision: ['BLOCK'] },
      { disposition: ['CONFIRMED'], decision: ['REVIEW'] },
      { disposition: ['CONFIRMED', 'OPEN'], decision: ['BLOCK'] },
      { device_id: 'd7' },
      { device_id: 'd7', disposition: ['OPEN'], decision: ['REVIEW'] },
      { user_id: 'u7' },
      { user_id: 'u7', flag: ['ROOTED'], severity: ['HIGH'] },
      { session_id: 's77' },
      { session_id: 's77', device_id: 'd77', min_score: 10 },
      { device_id: 'd7', updated_after: Date.UTC(2026, 0, 3) },
      { updated_after: Date.UTC(2026, 0, 28, 18) },
    ]
    const ranges = [{}, { from: Date.UTC(2026, 0, 2, 3, 4), to: Date.UTC(2026, 0, 20, 21, 33) }]
    for (const chosen of filters) {
      for (const range of ranges) {
        for (const after of [null, deep]) {
          const filter = { ...chosen, ...range }
          const query = { ...everything(tenantId), filter, limit: 50, after }
          const { text, values } = toListSql(query)
          // The generic plan, which a prepared statement settles on, and the one for these values.
          for (const mode of ['force_generic_plan', 'force_custom_plan']) {
            const pages = await explain(text, values ?? [], mode)
            expect(pages, `${mode} ${JSON.stringify(query)}`).toBeLessThan(250)
          }
        }
      }
    }
    for (const [afterSeq, filter] of [
      [0, {}],
      [size - 100, {}],
      [size, { disposition: ['OPEN'] }],
      [size / 2, { device_id: 'd7' }],
    ] as const) {
      const { text, values } = toListSql({ ...everything(tenantId), limit: 50, filter, afterSeq })
      const pages = await explain(text, values ?? [], 'force_generic_plan')
      expect(pages, `after_seq ${afterSeq} ${JSON.stringify(filter)}`).toBeLessThan(250)
    }
    expect((await store.listAlerts(everything(tenantId))).total).toBe(size)
  })

  test('uses one index for a flag, a severity, a score or a connection, and reads only the page', async () => {
    const filters: AlertFilter[] = [
      { flag: ['EMULATOR'] },
      { severity: ['CRITICAL', 'LOW'] },
      { min_score: 99, disposition: ['CONFIRMED'] },
      { country: 'DE' },
      { asn: 64_501 },
      { network: '198.18.7.0/24' },
      { network: '198.18.0.0/15', country: 'GB' },
      { updated_after: 0 },
    ]
    for (const filter of filters) {
      const { text, values } = toListSql({ ...everything(tenantId), limit: 50, filter })
      // Twice the pages of the index, once for the total and once for the page, and its alerts.
      const pages = await explain(text, values ?? [], 'force_generic_plan')
      expect(pages, JSON.stringify(filter)).toBeLessThan(2 * (await countIndexPages()) + 600)
    }
  })

  async function countIndexPages(): Promise<number> {
    const { rows } = await postgres.query<{ pages: number }>(
      `select pg_relation_size('alerts_newest_first') / 8192 as pages`,
    )
    return rows[0]!.pages
  }

  const toLiteral = (value: unknown): string =>
    value === null
      ? 'null'
      : pg.escapeLiteral(Array.isArray(value) ? `{${value.join(',')}}` : String(value))

  /** Runs a prepared statement; returns the number of 8 KiB pages that it touched. */
  async function explain(text: string, values: readonly unknown[], mode: string): Promise<number> {
    return await postgres.transaction(async (tx) => {
      await tx.query(`set local plan_cache_mode = ${mode}`)
      await tx.query(`prepare listing as ${text}`)
      const literals = values.map(toLiteral).join(', ')
      const { rows } = await tx.query<{ 'QUERY PLAN': { Plan: Record<string, number> }[] }>(
        `explain (analyze, buffers, format json) execute listing(${literals})`,
      )
      await tx.query('deallocate listing')
      const plan = rows[0]!['QUERY PLAN'][0]!.Plan
      return plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!
    })
  }
})

test('an alert names its tenant and the event that raised it', async () => {
  const tenantId = await addTenant()
  const candidate = makeAlertCandidate({ tenantId, sessionId: 's' })
  await store.raiseAlerts([candidate], Date.now)
  const alert = await store.findAlert({ alertId: candidate.alertId })
  expect(alert).toMatchObject({ tenant_id: tenantId, event_id: candidate.eventId })
})
