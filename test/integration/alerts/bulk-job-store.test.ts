// Bulk changes of alerts and their undo on a real PostgreSQL: exact counters, every alert once,
// also when consoles die in or between steps or work concurrently.
import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AlertFilter } from '#shared/core/alerts/alert-filters.ts'
import { operatorIdBytes, toOperatorsId } from '#shared/core/operators/operator-credentials.ts'
import { lockSequences } from '#shared/io/alerts/alert-lock.ts'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { setAssignee } from '#shared/io/alerts/alert-work-store.ts'
import { stepBulkJob } from '#shared/io/alerts/bulk/bulk-job-steps.ts'
import {
  type BulkChange,
  type BulkTarget,
  cancelBulkJob,
  countMatching,
  findBulkJob,
  leaseBulkJob,
  listBulkJobs,
  startBulkJob,
} from '#shared/io/alerts/bulk/bulk-job-store.ts'
import { startBulkUndo } from '#shared/io/alerts/bulk/undo-bulk-job.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { setDisposition } from '#shared/io/alerts/set-disposition.ts'
import { insertOperator } from '#shared/io/operators/operator-store.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { until } from '../../support/process/until.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'

let server: TestPostgres
let postgres: Postgres

beforeAll(async () => {
  server = await startPostgres()
  const url = await server.createMigratedDatabase()
  postgres = createPostgres(url, { role: 'test', log: createLog('test', 'silent') })
  for (const name of ['ada', 'bob', 'eve']) await addOperator(name)
})
afterAll(async () => {
  await postgres?.close()
  await server?.stop()
})

/** An analyst of all tenants. */
const addOperator = (name: string) =>
  insertOperator(postgres, {
    operatorId: toOperatorsId('opr', randomBytes(operatorIdBytes)),
    email: `${name}@example.com`,
    name,
    role: 'analyst',
    tenants: 'all',
    passwordHash: null,
    subject: { issuer: 'https://id.example', subject: name },
    nowMs: Date.now(),
    createdBy: 'admin',
  })

/** A tenant with 250 alerts. */
async function fill(tenantId: string): Promise<void> {
  await insertBareTenants(postgres, [tenantId])
  const candidates = Array.from({ length: 250 }, (_, n) =>
    makeAlertCandidate({
      tenantId,
      sessionId: `s${n}`,
      action: n % 3 === 0 ? 'BLOCK' : 'REVIEW',
    }),
  )
  await createAlertStore(postgres).raiseAlerts(candidates, Date.now)
}

type Meant = { filter: AlertFilter } | { alertIds: string[] }

const toTarget = async (db: Postgres, tenantId: string, meant: Meant): Promise<BulkTarget> =>
  'filter' in meant
    ? { ...meant, matching: await countMatching(db, { tenantId, ...meant }) }
    : meant

const start = async (
  tenantId: string,
  jobId: string,
  expectedCount: number,
  filter = {},
  db: Postgres = postgres,
) =>
  startBulkJob(db, {
    jobId,
    tenantId,
    target: await toTarget(db, tenantId, { filter }),
    change: { sets: 'disposition', disposition: 'CONFIRMED' },
    note: null,
    actor: 'ada@example.com',
    expectedCount,
    runningMax: 5,
  })

/** The pool, with the text of every statement of its transactions. */
function recorded(statements: string[]): Postgres {
  const transaction: Postgres['transaction'] = (work) =>
    postgres.transaction((tx) => {
      const query = ((sql: string | { text: string }, values?: unknown[]) => {
        statements.push(typeof sql === 'string' ? sql : sql.text)
        return tx.query(sql as string, values)
      }) as typeof tx.query
      return work({ ...tx, query })
    })
  return { ...postgres, transaction }
}

async function counts(tenantId: string) {
  const { rows } = await postgres.query<{ counted: number; real: number; hours: number }>(
    `select
       (select coalesce(sum(alert_count), 0) from alert_counts_by_day
        where tenant_id = $1 and disposition = 'CONFIRMED')::bigint as counted,
       (select coalesce(sum(alert_count), 0) from alert_counts_by_hour
        where tenant_id = $1 and disposition = 'CONFIRMED')::bigint as hours,
       (select count(*) from alerts where tenant_id = $1 and disposition = 'CONFIRMED') as real`,
    [tenantId],
  )
  return rows[0]!
}

test('a job changes each alert once and keeps the counters exact, with any consoles', async () => {
  await fill('steps')
  await start('steps', 'blk_steps', 250)
  expect(await leaseBulkJob(postgres)).toBe('blk_steps')
  // Its lease excludes other consoles, and two concurrent steps without it do nothing twice.
  expect(await leaseBulkJob(postgres)).toBeNull()
  while ((await Promise.all([1, 2].map(() => stepBulkJob(postgres, 'blk_steps')))).some(Boolean));
  const job = await findBulkJob(postgres, { jobId: 'blk_steps', scope: ['steps'] })
  expect(job).toMatchObject({ state: 'done', total: 250, done: 250, changed: 250 })
  expect(await counts('steps')).toEqual({ counted: 250, hours: 250, real: 250 })
  const { rows } = await postgres.query<{ records: number; audited: number }>(
    `select (select count(*) from alert_dispositions where tenant_id = 'steps') as records,
       (select count(*) from audit_log where tenant_id = 'steps'
          and action = 'alert.dispositioned' and actor = 'ada@example.com') as audited`,
  )
  expect(rows[0]).toEqual({ records: 250, audited: 250 })
  expect(await findBulkJob(postgres, { jobId: 'blk_steps', scope: ['other'] })).toBeNull()
})

test('a job skips alerts that others changed or that were raised after its start', async () => {
  await fill('meanwhile')
  const store = createAlertStore(postgres)
  await start('meanwhile', 'blk_mean', 250, { disposition: ['OPEN'] })
  await stepBulkJob(postgres, 'blk_mean')
  const { alerts } = await store.listAlerts({
    tenantId: 'meanwhile',
    filter: { disposition: ['OPEN'] },
    limit: 500,
    after: null,
  })
  const judged = alerts.at(-1)!
  const change = { disposition: 'FALSE_POSITIVE', note: null, actor: 'bob' } as const
  await store.setDisposition({ alertId: judged.alert_id, ...change })
  const late = makeAlertCandidate({ tenantId: 'meanwhile', sessionId: 'late' })
  await store.raiseAlerts([late], Date.now)
  while (await stepBulkJob(postgres, 'blk_mean'));
  const job = await findBulkJob(postgres, { jobId: 'blk_mean', scope: 'all' })
  expect(job).toMatchObject({ state: 'done', total: 250, done: 249, changed: 249 })
  const now = async (alertId: string) => (await store.findAlert({ alertId }))!.disposition
  expect([await now(judged.alert_id), await now(late.alertId)]).toEqual(['FALSE_POSITIVE', 'OPEN'])
  expect(await counts('meanwhile')).toEqual({ counted: 249, hours: 249, real: 249 })
})

test.each([
  ['is disabled', `disabled_at = now()`],
  ['is a viewer now', `role = 'viewer'`],
  ['sees other tenants only', `tenants = array['elsewhere']`],
])(
  'a job whose author %s ends at its next step, with the reason in the audit log',
  async (_, set) => {
    const tenantId = `rights-${randomUUID().slice(0, 8)}`
    const jobId = `blk_${tenantId}`
    await fill(tenantId)
    await start(tenantId, jobId, 250)
    expect(await stepBulkJob(postgres, jobId)).toBe(true)
    await postgres.query(`update operators set ${set} where email = 'ada@example.com'`)
    try {
      expect(await stepBulkJob(postgres, jobId)).toBe(false)
      const job = await findBulkJob(postgres, { jobId, scope: 'all' })
      expect(job).toMatchObject({ state: 'cancelled', done: 100, changed: 100 })
      expect((await counts(tenantId)).real).toBe(100)
      const { rows } = await postgres.query(
        `select actor, after->>'why' as why from audit_log
       where tenant_id = $1 and action = 'alert.bulk_cancelled'`,
        [tenantId],
      )
      const why = 'ada@example.com may not change alerts of the tenant any more'
      expect(rows).toEqual([{ actor: 'system', why }])
    } finally {
      await postgres.query(
        `update operators set disabled_at = null, role = 'analyst', tenants = null
       where email = 'ada@example.com'`,
      )
    }
  },
)

test('a cancelled job stops at its step; excess jobs and wrong counts are rejected', async () => {
  await fill('cancelled')
  expect(await start('cancelled', 'blk_wrong', 249)).toBe(250)
  await start('cancelled', 'blk_cancel', 250)
  await stepBulkJob(postgres, 'blk_cancel')
  const of = { jobId: 'blk_cancel', scope: 'all', actor: 'ada@example.com' } as const
  expect(await cancelBulkJob(postgres, of)).toMatchObject({ state: 'cancelled', done: 100 })
  expect(await stepBulkJob(postgres, 'blk_cancel')).toBe(false)
  expect((await counts('cancelled')).real).toBe(100)
  for (let n = 0; n < 5; n++) await start('cancelled', `blk_${n}`, 250)
  expect(await start('cancelled', 'blk_more', 250)).toBe('busy')
})

test('a job counts before it locks the alerts, and a wrong count needs no lock', async () => {
  await fill('unlocked')
  const statements: string[] = []
  await start('unlocked', 'blk_unlocked', 250, {}, recorded(statements))
  while (await stepBulkJob(recorded(statements), 'blk_unlocked'));
  const locks = statements.filter((text) => /from alert_sequences .*for update/s.test(text))
  expect(locks).toHaveLength(4)
  expect(
    statements.filter((text) => /alert_counts_by|count\(\*\)\s+from alerts/.test(text)),
  ).toEqual(statements.filter((text) => text.includes('insert into alert_counts_by')))
  const refused = await postgres.transaction(async (tx) => {
    await lockSequences(tx, ['unlocked'])
    return await start('unlocked', 'blk_refused', 249)
  })
  expect(refused).toBe(250)
})

test('a small job of one tenant does not wait for a large one of another', async () => {
  await Promise.all([fill('large'), fill('small')])
  await start('large', 'blk_large', 250)
  await start('small', 'blk_small', 1, { session_id: 's1' })
  const steps: string[] = []
  for (let id = await leaseBulkJob(postgres); id !== null; id = await leaseBulkJob(postgres)) {
    steps.push(id)
    await stepBulkJob(postgres, id)
  }
  expect(steps.filter((id) => ['blk_large', 'blk_small'].includes(id))).toEqual([
    ...['blk_large', 'blk_small'],
    ...['blk_large', 'blk_large'],
  ])
})

const someoneWaits = () =>
  until('a statement waits for a lock', async () => {
    const { rows } = await postgres.query<{ n: number }>(
      `select count(*) as n from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rows[0]!.n > 0
  })

test('a step looks for its alerts before the lock, and skips those that changed meanwhile', async () => {
  await fill('looking')
  const statements: string[] = []
  await start('looking', 'blk_looking', 250, { disposition: ['OPEN'], min_score: 1 })
  const change = { disposition: 'FALSE_POSITIVE', note: null, actor: 'bob' } as const
  const [newest] = (await states('looking')).reverse()
  let stepping: Promise<unknown> | undefined
  await postgres.transaction(async (tx) => {
    await lockSequences(tx, ['looking'])
    stepping = stepBulkJob(recorded(statements), 'blk_looking')
    // It has found its alerts, and only waits for the lock.
    await someoneWaits()
    await setDisposition(
      { ...tx, transaction: (work) => work(tx) },
      { alertId: newest!.alert_id, ...change },
    )
  })
  await stepping
  const isLock = (text: string) => /from alert_sequences .*for update/s.test(text)
  const lists = statements
    .slice(statements.findIndex(isLock))
    .filter((text) => text.includes('as matching'))
  expect(lists).toHaveLength(1)
  expect(lists[0]).toContain('alert_id = any(')
  expect(await finish('blk_looking')).toMatchObject({ state: 'done', done: 249, changed: 249 })
  expect((await states('looking')).reverse()[0]).toEqual({
    ...newest,
    disposition: 'FALSE_POSITIVE',
  })
})

test('an alert that is being raised when a job starts is not part of the job', async () => {
  await fill('raising')
  const late = makeAlertCandidate({ tenantId: 'raising', sessionId: 'late' })
  let starting: Promise<unknown> | undefined
  await postgres.transaction(async (tx) => {
    await raiseAlerts({ ...postgres, transaction: (work) => work(tx) }, [late], Date.now)
    starting = start('raising', 'blk_raising', 250)
    // The job has counted, and only waits for the lock.
    await someoneWaits()
  })
  expect(await starting).toMatchObject({ state: 'running', total: 250 })
  while (await stepBulkJob(postgres, 'blk_raising'));
  const job = await findBulkJob(postgres, { jobId: 'blk_raising', scope: 'all' })
  expect(job).toMatchObject({ state: 'done', total: 250, done: 250, changed: 250 })
  const { alerts } = await createAlertStore(postgres).listAlerts({
    tenantId: 'raising',
    filter: { disposition: ['OPEN'] },
    limit: 50,
    after: null,
  })
  expect(alerts.map((alert) => alert.alert_id)).toEqual([late.alertId])
})

/** Begins a job of any kind under its own id. */
async function begin(
  tenantId: string,
  jobId: string,
  expectedCount: number,
  { target, change }: { target: Meant; change: BulkChange },
) {
  const job = await startBulkJob(postgres, {
    target: await toTarget(postgres, tenantId, target),
    change,
    jobId,
    tenantId,
    note: null,
    actor: 'ada@example.com',
    expectedCount,
    runningMax: 5,
  })
  expect(job).toMatchObject({ job_id: jobId, total: expectedCount })
}

const undo = (jobId: string, undoOf: string) =>
  startBulkUndo(postgres, { jobId, undoOf, scope: 'all', actor: 'bob@example.com', runningMax: 5 })
const find = (jobId: string) => findBulkJob(postgres, { jobId, scope: 'all' })
const finish = async (jobId: string) => {
  while (await stepBulkJob(postgres, jobId));
  return find(jobId)
}

type State = { alert_id: string; disposition: string; assignee: string | null }
const states = async (tenantId: string): Promise<State[]> =>
  (
    await postgres.query<State>(
      `select alert_id, disposition, assignee from alerts where tenant_id = $1 order by seq`,
      [tenantId],
    )
  ).rows

/** A database whose first transaction loses its connection after its work, before the commit. */
function dying(): Postgres {
  let isFirst = true
  return {
    ...postgres,
    transaction: (work) => {
      const dies = isFirst
      isFirst = false
      return postgres.transaction(async (tx) => {
        const done = await work(tx)
        if (dies) await tx.query('select pg_terminate_backend(pg_backend_pid())')
        return done
      })
    },
  }
}

describe('the undo of a job', () => {
  test('restores each unchanged alert, through crashes in and between steps', async () => {
    // Jobs of earlier tests must not be leased here.
    await postgres.query(
      `update bulk_jobs set state = 'cancelled', ended_at = now() where state = 'running'`,
    )
    await fill('undo')
    const store = createAlertStore(postgres)
    const by = { note: null, actor: 'bob@example.com' }
    const ids = (await states('undo')).map((one) => one.alert_id)
    // The alerts had different dispositions before.
    for (const alertId of ids.slice(0, 30)) {
      await store.setDisposition({ alertId, disposition: 'REVIEWED', ...by })
    }
    const before = await states('undo')
    await begin('undo', 'blk_u', 250, {
      target: { filter: {} },
      change: { sets: 'disposition', disposition: 'CONFIRMED' },
    })
    expect(await undo('blk_early', 'blk_u')).toBe('running')
    await finish('blk_u')
    const [first, second, third] = [ids[3]!, ids[120]!, ids[50]!]
    await store.setDisposition({ alertId: first, disposition: 'FALSE_POSITIVE', ...by })
    // The same value as the job set, but set by a person.
    await store.setDisposition({ alertId: second, disposition: 'OPEN', ...by })
    await store.setDisposition({ alertId: second, disposition: 'CONFIRMED', ...by })

    expect(await undo('blk_undo', 'blk_u')).toMatchObject({
      undo_of: 'blk_u',
      actor: 'bob@example.com',
      total: 250,
    })
    expect(await leaseBulkJob(postgres)).toBe('blk_undo')
    await expect(stepBulkJob(dying(), 'blk_undo')).rejects.toThrow()
    expect(await find('blk_undo')).toMatchObject({ done: 0, changed: 0 })
    expect(await stepBulkJob(postgres, 'blk_undo')).toBe(true)
    // The console dies here; meanwhile another operator changes an alert that the undo has not
    // reached.
    await store.setDisposition({ alertId: third, disposition: 'REVIEWED', ...by })
    await postgres.query(`update bulk_jobs set leased_until = now() - interval '1 ms'`)
    expect(await leaseBulkJob(postgres)).toBe('blk_undo')
    while ((await Promise.all([1, 2].map(() => stepBulkJob(postgres, 'blk_undo')))).some(Boolean));

    expect(await find('blk_undo')).toMatchObject({
      state: 'done',
      total: 250,
      done: 250,
      changed: 247,
      kept: 3,
    })
    expect(await find('blk_u')).toMatchObject({ undone_by: 'blk_undo' })
    const kept: Record<string, string> = {
      [first]: 'FALSE_POSITIVE',
      [second]: 'CONFIRMED',
      [third]: 'REVIEWED',
    }
    expect(await states('undo')).toEqual(
      before.map((one) => ({ ...one, disposition: kept[one.alert_id] ?? one.disposition })),
    )
    const { rows } = await postgres.query(
      `select
         (select count(*) from alert_dispositions where job_id = 'blk_undo' and undoes is not null
            and actor = 'bob@example.com') as records,
         (select count(*) from audit_log where action = 'alert.disposition_undone'
            and actor = 'bob@example.com' and after->>'undo_of' = 'blk_u') as audited,
         (select sum(alert_count)::bigint from alert_counts_by_day
          where tenant_id = 'undo') as days,
         (select count(*) from (
            select disposition, sum(alert_count) as counted from alert_counts_by_hour
            where tenant_id = 'undo' group by 1) as c
          where counted <> (select count(*) from alerts
            where tenant_id = 'undo' and disposition = c.disposition)) as wrong`,
    )
    expect(rows).toEqual([{ records: 247, audited: 247, days: 250, wrong: 0 }])
  })

  test('starts once, also on concurrent requests; not for an undo or an empty job', async () => {
    await fill('once')
    const target = { filter: {} }
    const change = { sets: 'disposition', disposition: 'REVIEWED' } as const
    await begin('once', 'blk_once', 250, { target, change })
    await finish('blk_once')
    await begin('once', 'blk_again', 250, { target, change })
    await finish('blk_again')
    expect(await undo('blk_none', 'blk_again')).toBe('nothing_changed')
    const begun = await Promise.all([undo('blk_a', 'blk_once'), undo('blk_b', 'blk_once')])
    expect(begun.filter((one) => one === 'undone')).toHaveLength(1)
    const { job_id: id } = begun.find((one) => typeof one === 'object')!
    await finish(id)
    expect(await undo('blk_c', 'blk_once')).toBe('undone')
    expect(await undo('blk_d', id)).toBe('is_undo')
    const of = { undoOf: 'blk_once', actor: 'eve', runningMax: 5 }
    expect(await startBulkUndo(postgres, { ...of, jobId: 'blk_e', scope: ['other'] })).toBeNull()
    expect((await states('once')).every((one) => one.disposition === 'OPEN')).toBe(true)
    const listed = await listBulkJobs(postgres, { tenantId: 'once', limit: 2 })
    expect(listed.map((job) => job.job_id)).toEqual([id, 'blk_again'])
  })

  test('reverts a cancelled job; a cancelled undo continues where it stopped', async () => {
    await fill('parts')
    await begin('parts', 'blk_p', 250, {
      target: { filter: {} },
      change: { sets: 'disposition', disposition: 'REVIEWED' },
    })
    await stepBulkJob(postgres, 'blk_p')
    await stepBulkJob(postgres, 'blk_p')
    await cancelBulkJob(postgres, { jobId: 'blk_p', scope: 'all', actor: 'ada@example.com' })
    expect(await undo('blk_p1', 'blk_p')).toMatchObject({ total: 200 })
    await stepBulkJob(postgres, 'blk_p1')
    await cancelBulkJob(postgres, { jobId: 'blk_p1', scope: 'all', actor: 'ada@example.com' })
    const left = async () =>
      (await states('parts')).filter((one) => one.disposition === 'REVIEWED').length
    expect(await left()).toBe(100)
    expect(await undo('blk_p2', 'blk_p')).toMatchObject({ total: 100 })
    expect(await finish('blk_p2')).toMatchObject({ done: 100, changed: 100, kept: 0 })
    expect(await left()).toBe(0)
  })
})

test('a job can be undone after a later one was undone and restored the state', async () => {
  await fill('nested')
  const before = await states('nested')
  const target = { filter: {} }
  for (const [id, disposition] of [
    ['blk_n1', 'REVIEWED'],
    ['blk_n2', 'CONFIRMED'],
  ] as const) {
    await begin('nested', id, 250, { target, change: { sets: 'disposition', disposition } })
    await finish(id)
  }
  await undo('blk_n2u', 'blk_n2')
  await finish('blk_n2u')
  expect((await states('nested')).every((one) => one.disposition === 'REVIEWED')).toBe(true)
  await undo('blk_n1u', 'blk_n1')
  expect(await finish('blk_n1u')).toMatchObject({ changed: 250, kept: 0 })
  expect(await states('nested')).toEqual(before)
})

describe('assigning', () => {
  const ada = { sets: 'assignee', assignee: 'ada@example.com' } as const

  test('works by filter, and its undo skips alerts that others have assigned since', async () => {
    await fill('assign')
    const ids = (await states('assign')).map((one) => one.alert_id)
    const by = { scope: 'all', actor: 'eve@example.com' } as const
    await setAssignee(postgres, { alertId: ids[7]!, assignee: 'eve@example.com', ...by })
    const before = await states('assign')
    await begin('assign', 'blk_as', 250, { target: { filter: {} }, change: ada })
    expect(await finish('blk_as')).toMatchObject({ state: 'done', done: 250, changed: 250 })
    expect((await states('assign')).every((one) => one.assignee === ada.assignee)).toBe(true)
    await setAssignee(postgres, { alertId: ids[60]!, assignee: null, ...by })
    await undo('blk_as_undo', 'blk_as')
    await stepBulkJob(postgres, 'blk_as_undo')
    await expect(stepBulkJob(dying(), 'blk_as_undo')).rejects.toThrow()
    expect(await finish('blk_as_undo')).toMatchObject({ changed: 249, kept: 1, done: 250 })
    expect(await states('assign')).toEqual(before)
    const { rows } = await postgres.query(
      `select action, actor, count(*) as n from audit_log where tenant_id = 'assign'
         and action like 'alert.assign%' group by 1, 2 order by 1, 2`,
    )
    expect(rows).toEqual([
      { action: 'alert.assigned', actor: 'ada@example.com', n: 250 },
      { action: 'alert.assigned', actor: 'eve@example.com', n: 2 },
      { action: 'alert.assignment_undone', actor: 'bob@example.com', n: 249 },
    ])
  })

  test('of a selection changes these alerts of this tenant, each counted once', async () => {
    await fill('selection')
    await fill('stranger')
    const ids = (await states('selection')).slice(0, 130).map((one) => one.alert_id)
    const strange = (await states('stranger'))[0]!.alert_id
    const target = { alertIds: [...ids, ids[0]!, strange, 'alr_none'] }
    await begin('selection', 'blk_sel', 130, { target, change: ada })
    expect(await stepBulkJob(postgres, 'blk_sel')).toBe(true)
    expect(await find('blk_sel')).toMatchObject({ done: 100 })
    expect(await finish('blk_sel')).toMatchObject({ state: 'done', done: 130, changed: 130 })
    const assigned = (await states('selection')).filter((one) => one.assignee !== null)
    expect(assigned.map((one) => one.alert_id)).toEqual(ids)
    expect((await states('stranger')).every((one) => one.assignee === null)).toBe(true)
  })
})
