// Bulk changes of dispositions against a real PostgreSQL: exact counters, every alert once, also
// when consoles die between steps or work at the same time.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { lockSequences } from '#shared/io/alerts/alert-lock.ts'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import {
  cancelBulkJob,
  countMatching,
  findBulkJob,
  leaseBulkJob,
  startBulkJob,
  stepBulkJob,
} from '#shared/io/alerts/bulk-job-store.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { migratePostgres } from '../../support/servers/databases.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'

let server: TestPostgres
let postgres: Postgres

beforeAll(async () => {
  server = await startPostgres()
  const url = await server.createDatabase()
  await migratePostgres(url)
  postgres = createPostgres(url, { role: 'test', log: createLog('test', 'silent') })
})
afterAll(async () => {
  await postgres?.close()
  await server?.stop()
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

const start = (
  tenantId: string,
  jobId: string,
  expectedCount: number,
  filter = {},
  db: Postgres = postgres,
) =>
  startBulkJob(db, {
    jobId,
    tenantId,
    filter,
    disposition: 'CONFIRMED',
    note: null,
    actor: 'ada@example.com',
    expectedCount,
    runningMax: 5,
    count: (of) => countMatching(db, of),
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

test('a job changes each alert once and keeps the counters exact, whoever takes its steps', async () => {
  await fill('steps')
  await start('steps', 'blk_steps', 250)
  expect(await leaseBulkJob(postgres)).toBe('blk_steps')
  // Its lease keeps other consoles away, and two that step all the same do nothing twice.
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

test('a job leaves alone what others judged meanwhile and what was raised after its start', async () => {
  await fill('meanwhile')
  const store = createAlertStore(postgres)
  await start('meanwhile', 'blk_mean', 250, { disposition: ['OPEN'] })
  await stepBulkJob(postgres, 'blk_mean')
  const { alerts } = await store.listAlerts({
    tenantId: 'meanwhile',
    dispositions: ['OPEN'],
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

test('a cancelled job stops at its step; too many jobs and another count are refused', async () => {
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

test('nothing is counted while the lock of the alerts is held, and a wrong count needs no lock', async () => {
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

test('an alert that is being raised at the start of a job is no part of it', async () => {
  await fill('raising')
  const late = makeAlertCandidate({ tenantId: 'raising', sessionId: 'late' })
  let starting: Promise<unknown> | undefined
  await postgres.transaction(async (tx) => {
    await raiseAlerts({ ...postgres, transaction: (work) => work(tx) }, [late], Date.now)
    starting = start('raising', 'blk_raising', 250)
    // It is counted now, and waits for the lock only.
    await expect(Promise.race([starting, sleep(500)])).resolves.toBeUndefined()
  })
  expect(await starting).toMatchObject({ state: 'running', total: 250 })
  while (await stepBulkJob(postgres, 'blk_raising'));
  const job = await findBulkJob(postgres, { jobId: 'blk_raising', scope: 'all' })
  expect(job).toMatchObject({ state: 'done', total: 250, done: 250, changed: 250 })
  const { alerts } = await createAlertStore(postgres).listAlerts({
    tenantId: 'raising',
    dispositions: ['OPEN'],
    limit: 50,
    after: null,
  })
  expect(alerts.map((alert) => alert.alert_id)).toEqual([late.alertId])
})
