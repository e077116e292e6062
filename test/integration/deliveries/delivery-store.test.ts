// Claims, outcomes and listings of deliveries on a real PostgreSQL, with the test's clock.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { webhookSecretLeaseMs } from '#shared/core/base/limits/deliveries.ts'
import type { DeliveryQueue } from '#shared/io/deliveries/claim-deliveries.ts'
import { createDeliveryStore, type DeliveryStore } from '#shared/io/deliveries/delivery-store.ts'
import { findDueQueues } from '#shared/io/deliveries/find-due-deliveries.ts'
import { type DeliveryQuery, listDeliveries } from '#shared/io/deliveries/list-deliveries.ts'
import type { AttemptRecord, DeliveryOutcome } from '#shared/io/deliveries/record-outcomes.ts'
import { processSessions } from '#shared/io/migrations/process-sessions.ts'
import { createPostgres, type Postgres, type Queryable } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import {
  createDeliveryFixtures,
  type DeliveryFixtures,
} from '../../support/deliveries/delivery-fixtures.ts'
import { atTime } from '../../support/servers/database-clock.ts'
import {
  type MigratedPostgres,
  startMigratedPostgres,
} from '../../support/servers/migrated-postgres.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'

let database: MigratedPostgres
let postgres: Postgres
let store: DeliveryStore
let fixtures: DeliveryFixtures

beforeAll(async () => {
  database = await startMigratedPostgres({ connectionsMax: 12 })
  postgres = database.postgres
  store = createDeliveryStore(atTime(postgres, { nowMs: () => nowMs }))
  fixtures = createDeliveryFixtures(postgres)
})

afterAll(() => database?.close())

const start = Date.parse('2027-01-01T00:00:00Z')
const claimMs = 30_000
let claims = 0

/** The database's clock: each call sets it. */
let nowMs = start
const at = (ms: number): DeliveryStore => {
  nowMs = ms
  return store
}

function claim(ms: number, queues: (DeliveryQueue & { limit?: number })[], takeOver = true) {
  const limited = queues.map(({ limit = 100, ...queue }) => ({ ...queue, limit }))
  return at(ms).claimDeliveries({ queues: limited, claim: `c${++claims}`, claimMs, takeOver })
}
/** Records outcomes at a time, with the attempts' own times. */
const record = (outcomes: readonly DeliveryOutcome[], ms: number) =>
  at(ms).recordOutcomes(outcomes, ms)
const list = async (query: DeliveryQuery) => (await listDeliveries(postgres, query)).deliveries
const first = (tenantId: string): DeliveryQueue => ({ tenantId, retry: false })
const retry = (tenantId: string): DeliveryQueue => ({ tenantId, retry: true })

const attempt = (some: Partial<AttemptRecord> = {}): AttemptRecord => ({
  attempt: 1,
  atMs: start,
  durationMs: 12.3,
  status: 500,
  errorKind: 'status',
  error: null,
  address: '127.0.0.1',
  answer: 'no',
  ...some,
})

type Claimed = Pick<DeliveryOutcome, 'tenantId' | 'deliveryId' | 'createdAt' | 'alertId' | 'claim'>
const outcome = (
  { tenantId, deliveryId, createdAt, alertId, claim: held }: Claimed,
  next: DeliveryOutcome['next'],
  made: AttemptRecord | null = attempt(),
): DeliveryOutcome => ({
  tenantId,
  deliveryId,
  createdAt,
  alertId,
  claim: held,
  next,
  attempt: made,
})

const ids = (claimed: { deliveryId: string }[]) => claimed.map((one) => one.deliveryId)

test('a claim leases the due deliveries with their exact bytes', async () => {
  const { tenantId } = await fixtures.addTenant({ url: 'https://example.com/hook' })
  const [id] = await fixtures.addDeliveries(tenantId, 1, { atMs: start })
  const [claimed] = await claim(start, [first(tenantId)])
  expect(claimed).toMatchObject({
    tenantId,
    deliveryId: id,
    event: 'risk.alert',
    attempts: 0,
    attemptsBefore: 0,
    probe: false,
    webhook: { environment: 'sandbox', state: 'on', url: 'https://example.com/hook' },
    secretLeaseMs: webhookSecretLeaseMs,
  })
  expect(claimed!.body.toString()).toMatch(
    /^\{"alert_id": "alr_.*",\n "created_at":"x", {2}"n": \d+\.0\}$/,
  )
  expect(await claim(start, [first(tenantId)])).toEqual([])
  expect(await fixtures.read(id!)).toMatchObject({ state: 'pending', claimed_by: claimed!.claim })
})

test('no delivery is leased early', async () => {
  const { tenantId } = await fixtures.addTenant({ url: 'https://example.com/' })
  const [id] = await fixtures.addDeliveries(tenantId, 1, { atMs: start })
  expect(await claim(start - 1, [first(tenantId)])).toEqual([])
  const [claimed] = await claim(start, [first(tenantId)])
  expect(claimed!.deliveryId).toBe(id)
  const dueAtMs = start + 5_000
  await record([outcome(claimed!, { state: 'pending', dueAtMs })], start)
  expect(await claim(dueAtMs - 1, [first(tenantId), retry(tenantId)])).toEqual([])
  expect(ids(await claim(dueAtMs, [first(tenantId), retry(tenantId)]))).toEqual([id])
})

test('an expired claim is taken over with the same bytes, but only on request', async () => {
  const { tenantId } = await fixtures.addTenant({ url: 'https://example.com/' })
  await fixtures.addDeliveries(tenantId, 1, { atMs: start })
  const [lost] = await claim(start, [first(tenantId)])
  expect(await claim(start + claimMs - 1, [first(tenantId)])).toEqual([])
  expect(await claim(start + claimMs, [first(tenantId)], false)).toEqual([])
  const [taken] = await claim(start + claimMs, [first(tenantId)])
  expect(taken).toMatchObject({ deliveryId: lost!.deliveryId, attempts: 0 })
  expect(taken!.body.equals(lost!.body)).toBe(true)
  // The first owner returns late: its outcome must not change the work of the second one.
  const late = await record([outcome(lost!, { state: 'delivered' })], start)
  expect(late.recorded.size).toBe(0)
  const current = await fixtures.read(lost!.deliveryId)
  expect(current).toMatchObject({ claimed_by: taken!.claim, attempts: 0 })
  const done = await record([outcome(taken!, { state: 'delivered' })], start)
  expect([...done.recorded]).toEqual([taken!.deliveryId])
})

test('concurrent processes never claim the same delivery', async () => {
  const tenantIds: string[] = []
  const all: string[] = []
  for (let i = 0; i < 5; i++) {
    const { tenantId } = await fixtures.addTenant({ url: 'https://example.com/' })
    tenantIds.push(tenantId)
    all.push(...(await fixtures.addDeliveries(tenantId, 200, { atMs: start })))
  }
  const processes = Array.from({ length: 8 }, async () => {
    const mine: string[] = []
    for (;;) {
      const got = await claim(
        start,
        tenantIds.map((id) => ({ ...first(id), limit: 7 })),
      )
      if (got.length === 0) return mine
      mine.push(...ids(got))
    }
  })
  const claimed = (await Promise.all(processes)).flat()
  expect(claimed).toHaveLength(1_000)
  expect(new Set(claimed)).toEqual(new Set(all))
})

test('a claim takes at most the limit of each queue, oldest first', async () => {
  const a = await fixtures.addTenant({ url: 'https://example.com/' })
  const b = await fixtures.addTenant({ url: 'https://example.com/' })
  const late = await fixtures.addDeliveries(a.tenantId, 2, { atMs: start })
  const early = await fixtures.addDeliveries(a.tenantId, 2, { atMs: start - 1_000 })
  const other = await fixtures.addDeliveries(b.tenantId, 5, { atMs: start })
  const got = await claim(start, [
    { ...first(a.tenantId), limit: 3 },
    { ...first(b.tenantId), limit: 2 },
    { ...retry(b.tenantId), limit: 9 },
  ])
  const mine = ids(got.filter((one) => one.tenantId === a.tenantId))
  expect(mine).toHaveLength(3)
  expect(mine).toEqual(expect.arrayContaining(early))
  expect(late.filter((id) => mine.includes(id))).toHaveLength(1)
  expect(other.filter((id) => ids(got).includes(id))).toHaveLength(2)
})

test('a suspended tenant and a paused webhook wait; no webhook means no URL', async () => {
  const { tenantId } = await fixtures.addTenant({ url: 'https://example.com/' })
  const [id] = await fixtures.addDeliveries(tenantId, 1, { atMs: start })
  const dueNow = async () =>
    (await at(start).findDueQueues()).filter((queue) => queue.tenantId === tenantId)
  const setStatus = (status: string) =>
    postgres.query('update tenants set status = $2 where tenant_id = $1', [tenantId, status])
  await setStatus('suspended')
  expect([await dueNow(), await claim(start, [first(tenantId)])]).toEqual([[], []])
  await setStatus('active')
  await fixtures.setWebhook(tenantId, 'https://example.com/', 'paused')
  expect([await dueNow(), await claim(start, [first(tenantId)])]).toEqual([[], []])
  await fixtures.setWebhook(tenantId, null)
  expect(await dueNow()).toHaveLength(1)
  const [claimed] = await claim(start, [first(tenantId)])
  expect(claimed).toMatchObject({ deliveryId: id, webhook: { state: 'off' } })
  await record([outcome(claimed!, { state: 'skipped', reason: 'no_webhook' }, null)], start)
  // A webhook that is set later does not change skipped deliveries.
  await fixtures.setWebhook(tenantId, 'https://example.com/')
  expect(await claim(start + 1_000_000, [first(tenantId), retry(tenantId)])).toEqual([])
  expect(await fixtures.read(id!)).toMatchObject({ state: 'skipped', reason: 'no_webhook' })
})

test('the sweep finds each queue with a due delivery, and the age of its oldest one', async () => {
  const a = await fixtures.addTenant({ url: 'https://example.com/' })
  const b = await fixtures.addTenant({ url: 'https://example.com/' })
  const c = await fixtures.addTenant({ url: 'https://example.com/' })
  await fixtures.addDeliveries(a.tenantId, 3, { atMs: start - 2_000 })
  await fixtures.addDeliveries(a.tenantId, 3, { atMs: start - 1_000 })
  await fixtures.addDeliveries(b.tenantId, 1, { atMs: start + 5_000 })
  const [again] = await fixtures.addDeliveries(c.tenantId, 2, { atMs: start - 9_000 })
  const got = await claim(start, [{ ...first(c.tenantId), limit: 2 }])
  const repeated = got.find((one) => one.deliveryId === again)!
  await record([outcome(repeated, { state: 'pending', dueAtMs: start - 1 })], start)
  const mine = [a, b, c].map(({ tenantId }) => tenantId)
  const due = async (ms: number) =>
    (await at(ms).findDueQueues()).filter((queue) => mine.includes(queue.tenantId))
  expect(await due(start)).toEqual([
    { ...first(a.tenantId), overdueMs: 2_000 },
    { ...retry(c.tenantId), overdueMs: 1 },
  ])
  // The other delivery of c is in flight: it is due again when its claim expires.
  const later = await due(start + claimMs)
  expect(later.map((queue) => [queue.tenantId, queue.retry])).toEqual([
    [a.tenantId, false],
    [b.tenantId, false],
    [c.tenantId, false],
    [c.tenantId, true],
  ])
  expect(await at(start).countDue()).toBeGreaterThanOrEqual(7)
  expect(await store.countDue(2)).toBe(2)
})

test('many attempts are recorded at once, each with the new state of its delivery', async () => {
  const { tenantId } = await fixtures.addTenant({ url: 'https://example.com/' })
  await fixtures.addDeliveries(tenantId, 4, { atMs: start })
  const [a, b, c, d] = await claim(start, [first(tenantId)])
  const answer = `käse ${'x'.repeat(4_000)} '";\\`
  const recorded = await record(
    [
      outcome(a!, { state: 'delivered' }, attempt({ status: 204, errorKind: null, answer: '' })),
      outcome(b!, { state: 'pending', dueAtMs: start + 5_123 }, attempt({ answer })),
      outcome(
        c!,
        { state: 'failed', reason: 'exhausted' },
        attempt({ status: null, errorKind: 'timeout', error: 'late', answer: null }),
      ),
      outcome(d!, { state: 'pending', dueAtMs: start }, null),
    ],
    start + 100,
  )
  expect(recorded.recorded.size).toBe(4)
  const listed = await list({ tenantId, limit: 10 })
  const byId = new Map(listed.map((one) => [one.delivery_id, one]))
  expect(byId.get(a!.deliveryId)).toMatchObject({
    tenant_id: tenantId,
    alert_id: expect.stringMatching(/^alr_/),
    event: 'risk.alert',
    state: 'delivered',
    reason: null,
    due_at: null,
    ended_at: new Date(start + 100).toISOString(),
    attempts: [
      {
        attempt: 1,
        at: new Date(start).toISOString(),
        duration_ms: 12,
        status: 204,
        error_kind: null,
        error: null,
        address: '127.0.0.1',
        answer: '',
      },
    ],
  })
  expect(byId.get(b!.deliveryId)).toMatchObject({
    state: 'pending',
    due_at: new Date(start + 5_123).toISOString(),
    ended_at: null,
    attempts: [{ status: 500, error_kind: 'status', answer }],
  })
  expect(byId.get(c!.deliveryId)).toMatchObject({
    state: 'failed',
    reason: 'exhausted',
    attempts: [{ status: null, error_kind: 'timeout', error: 'late', answer: null }],
  })
  // A release is not an attempt.
  expect(byId.get(d!.deliveryId)).toMatchObject({ state: 'pending', attempts: [] })
  expect(await fixtures.read(d!.deliveryId)).toMatchObject({ attempts: 0, claimed_by: null })
})

test('a list has only the tenant’s deliveries, newest first, by state and bounded', async () => {
  const mine = await fixtures.addTenant({ url: 'https://example.com/' })
  const theirs = await fixtures.addTenant({ url: 'https://example.com/' })
  await fixtures.addDeliveries(theirs.tenantId, 3)
  const older = await fixtures.addDeliveries(mine.tenantId, 2, { atMs: start })
  const [newer] = await fixtures.addDeliveries(mine.tenantId, 1, { atMs: start + 1 })
  const got = await claim(start, [{ ...first(mine.tenantId), limit: 2 }])
  await record(
    got.map((one) => outcome(one, { state: 'delivered' })),
    start,
  )
  const { tenantId } = mine
  const all = await list({ tenantId, limit: 10 })
  expect(all.map((one) => one.delivery_id)).toHaveLength(3)
  expect(all[0]!.delivery_id).toBe(newer)
  expect(ids2(await list({ tenantId, state: 'delivered', limit: 10 }))).toEqual(new Set(older))
  expect(await list({ tenantId, state: 'failed', limit: 10 })).toEqual([])
  expect(await list({ tenantId, limit: 1 })).toHaveLength(1)
  expect(await list({ tenantId: 'nobody', limit: 10 })).toEqual([])
})
const ids2 = (listed: { delivery_id: string }[]) => new Set(listed.map((one) => one.delivery_id))

test('a gone receiver switches its webhook off, once, with an audit entry', async () => {
  const url = 'https://example.com/gone'
  const { tenantId } = await fixtures.addTenant({ url })
  await fixtures.addDeliveries(tenantId, 3, { atMs: start })
  const [a, b, c] = await claim(start, [first(tenantId)])
  const gone = (one: Claimed, goneUrl = url): DeliveryOutcome => ({
    ...outcome(one, { state: 'failed', reason: 'gone' }, attempt({ status: 410 })),
    switchOff: { url: goneUrl, reason: 'gone' },
  })
  const webhook = async () => (await store.readWebhooks([tenantId])).webhooks.get(tenantId)!
  // The URL was changed while the old receiver answered: the new one is not gone.
  const other = await record([gone(a!, 'https://example.com/old')], start)
  expect(other).toMatchObject({ switchedOff: [] })
  expect(await webhook()).toMatchObject({ state: 'on', url })
  const both = await record([gone(b!), gone(c!)], start)
  expect(both.switchedOff).toEqual([tenantId])
  expect(await webhook()).toMatchObject({ state: 'off', url })
  const { rows } = await postgres.query(
    'select actor, action, before, after from audit_log where tenant_id = $1',
    [tenantId],
  )
  expect(rows).toEqual([
    {
      actor: 'system',
      action: 'webhook.switched_off',
      before: { url },
      after: { state: 'off', off_reason: 'gone', delivery_id: b!.deliveryId },
    },
  ])
  // Without the claim there is no effect.
  const again = await record([gone(b!)], start)
  expect(again).toEqual({ recorded: new Set(), switchedOff: [], health: [] })
})

test('a webhook is read with its current secret, state and status', async () => {
  const { tenantId, secret } = await fixtures.addTenant({ url: 'https://example.com/' })
  const read = async () => (await store.readWebhooks([tenantId, 'nobody'])).webhooks.get(tenantId)!
  const unsealed = async () =>
    fixtures.sealer.unseal((await read()).sealedSecret!, { tenantId, kind: 'webhook' })
  expect(await unsealed()).toBe(secret)
  const next = await fixtures.rotateSecret(tenantId)
  expect(await unsealed()).toBe(next)
  await postgres.query(
    `update tenant_secrets set state = 'retired', retired_at = now()
     where tenant_id = $1 and state = 'active'`,
    [tenantId],
  )
  await postgres.query("update tenants set status = 'suspended' where tenant_id = $1", [tenantId])
  expect(await read()).toEqual({
    environment: 'sandbox',
    suspended: true,
    state: 'on',
    url: 'https://example.com/',
    sealedSecret: null,
  })
  expect((await store.readWebhooks(['nobody'])).webhooks.size).toBe(0)
})

test('attempts are removed with their delivery and with their tenant, and no others', async () => {
  const tenants = [await fixtures.addTenant({ url: 'https://example.com/' })]
  tenants.push(await fixtures.addTenant({ url: 'https://example.com/' }))
  const ended: string[] = []
  for (const { tenantId } of tenants) {
    await fixtures.addDeliveries(tenantId, 2, { atMs: start })
    const claimed = await claim(start, [first(tenantId)])
    await record(
      claimed.map((one) => outcome(one, { state: 'delivered' })),
      start,
    )
    ended.push(...ids(claimed))
  }
  const left = async () => {
    const { rows } = await postgres.query<{ delivery_id: string }>(
      'select delivery_id from delivery_attempts where delivery_id = any($1)',
      [ended],
    )
    return rows.map((row) => row.delivery_id).sort()
  }
  expect(await left()).toEqual([...ended].sort())
  await postgres.query('delete from deliveries where delivery_id = $1', [ended[0]])
  expect(await left()).toEqual(ended.slice(1).sort())
  await postgres.query('delete from tenants where tenant_id = $1', [tenants[0]!.tenantId])
  expect(await left()).toEqual(ended.slice(2).sort())
})

test('claims and outcomes read only their own rows, however many there are', async () => {
  const { tenantId } = await fixtures.addTenant({ url: 'https://example.com/' })
  const waiting = 3_000
  await fixtures.addDeliveries(tenantId, waiting, { atMs: start })
  // A sender's session: its plans do not depend on statistics.
  const sender = createPostgres(database.databaseUrl, {
    role: 'delivery',
    log: createLog('test', 'silent'),
    ...processSessions.delivery,
  })
  const { claimed, read } = await sender.transaction(async (tx) => {
    const own = atTime({ ...postgres, query: tx.query }, { nowMs: () => start })
    const made = await createDeliveryStore(own).claimDeliveries({
      queues: [{ ...first(tenantId), limit: 20 }],
      claim: `c${++claims}`,
      claimMs,
      takeOver: true,
    })
    const failed = { url: 'https://example.com/', ok: false, failure: 'status 500' }
    const outcomes = made.map((one) => ({
      ...outcome(one, { state: 'delivered' }),
      health: { ...failed, probe: false, openCircuit: false },
    }))
    await createDeliveryStore(own).recordOutcomes(outcomes, start)
    const { rows } = await tx.query<{ table: string; fetched: number }>(
      `select case when relname = 'webhooks' then relname else 'deliveries' end as table,
         sum(idx_tup_fetch + seq_tup_read) as fetched
       from pg_stat_xact_user_tables where relname = 'webhooks' or relname like 'deliveries_%'
       group by 1`,
    )
    return { claimed: made, read: new Map(rows.map((row) => [row.table, Number(row.fetched)])) }
  })
  await sender.close()
  expect(claimed).toHaveLength(20)
  expect(read.get('deliveries')).toBeLessThan(waiting / 10)
  expect(read.get('webhooks')).toBeLessThan(30)
})

test('a sweep with nothing due reads as much with 300 tenants that wait as with one', async () => {
  const { server } = database
  const url = await server.createMigratedDatabase()
  const log = createLog('test', 'silent')
  const own = createPostgres(url, { role: 'test', log, ...processSessions.delivery })
  const addWaiting = async (from: number, to: number) => {
    const tenants = Array.from({ length: to - from }, (_, n) => `waiting-${from + n}`)
    await insertBareTenants(own, tenants)
    await own.query(
      `insert into deliveries (tenant_id, delivery_id, body, due_at)
       select t, t, 'x', now() + interval '1 day' from unnest($1::text[]) as t`,
      [tenants],
    )
    await own.query('vacuum analyze deliveries')
  }
  const countBlocks = async (): Promise<number> => {
    let blocks = 0
    const explaining: Queryable = {
      query: async (sql) => {
        const { text } = sql as { text: string }
        const { rows } = await own.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
          `explain (analyze, buffers, format json) ${text}`,
        )
        const { Plan: plan } = rows[0]!['QUERY PLAN'][0]
        blocks += plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!
        return { rows: [{ seen: 0, tenant_id: null }] as never, rowCount: 1 }
      },
    }
    expect(await findDueQueues(explaining)).toEqual([])
    return blocks
  }
  await addWaiting(0, 1)
  const one = await countBlocks()
  await addWaiting(1, 300)
  expect(await countBlocks()).toBeLessThan(one + 20)
  await own.close()
})
