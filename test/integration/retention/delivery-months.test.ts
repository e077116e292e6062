// The partitions of deliveries on real servers: a delivery and its attempts are in the partition of
// its month, a month in which everything has expired is dropped, and nothing else is lost with it.
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { toDeliveryId } from '#shared/core/base/ids.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { readDeliveries, readDeliveriesOfAlerts } from '#shared/io/analytics/replication-store.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { preferKeyLookups } from '#shared/io/deliveries/key-lookups.ts'
import { beginReplay, replayAlert, replayNext } from '#shared/io/deliveries/replay-deliveries.ts'
import { countErasableAlerts, eraseAlerts } from '#shared/io/erasure/erasure-alerts-store.ts'
import {
  isSqlState,
  type Postgres,
  type Queryable,
  type Session,
  sqlStates,
} from '#shared/io/postgres/postgres.ts'
import { createMetrics, type Metrics } from '#shared/io/process/metrics.ts'
import {
  createDeliveryMonths,
  dropExpiredDeliveryMonth,
  findOverdue,
  removeAlerts,
  removeDeliveries,
} from '#shared/io/retention/retention-store.ts'
import { createReplication } from '../../../services/console/jobs/replication.ts'
import { createRetention } from '../../../services/console/jobs/retention.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import {
  type MigratedPostgres,
  startMigratedPostgres,
} from '../../support/servers/migrated-postgres.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'

const dayMs = 24 * 3_600_000
/** Null: kept for ever. */
const daysOf = { brief: 1, usual: 30, long: 100, forever: null } as const
type Tenant = keyof typeof daysOf
const tenants = Object.keys(daysOf) as Tenant[]

let database: MigratedPostgres
let engine: TestClickhouse
let clickhouse: Clickhouse
let metrics: Metrics

beforeAll(async () => {
  ;[database, engine] = await Promise.all([
    startMigratedPostgres(),
    startClickhouse({ isMigrated: true }),
  ])
  clickhouse = createClickhouse(engine.url, { name: 'test' })
})
afterAll(async () => {
  await clickhouse?.close()
  await Promise.all([database?.close(), engine?.stop()])
})
beforeEach(resetRows)

/** Empty tables, and a partition for each of the five months before this one. */
async function resetRows(): Promise<void> {
  const { postgres } = database
  await postgres.query('delete from tenants')
  await insertBareTenants(postgres, tenants)
  await postgres.query(
    `update tenants set delivery_retention_days = d.days
     from unnest($1::text[], $2::integer[]) as d (tenant_id, days)
     where tenants.tenant_id = d.tenant_id`,
    [tenants, tenants.map((tenant) => daysOf[tenant] ?? 0)],
  )
  for (const ago of [1, 2, 3, 4, 5]) await createMonth(ago)
}

/** The first instant of a month before this one, in UTC. */
function monthStart(ago: number): Date {
  const now = new Date()
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago))
}
const nameOf = (ago: number) => monthStart(ago).toISOString().slice(0, 7).replace('-', '_')

const createMonth = (ago: number) =>
  database.postgres.query('select create_delivery_month($1::date)', [
    monthStart(ago).toISOString().slice(0, 10),
  ])

type Row = { tenant: Tenant; createdAtMs: number; endedAtMs: number | null }

let ids = 0
/** Deliveries, each with two attempts. @returns their ids in order */
async function addRows(rows: readonly Row[]): Promise<string[]> {
  const { postgres } = database
  const made = rows.map((row) => ({ ...row, id: `dlv_${++ids}` }))
  await postgres.query(
    `with made as (
       insert into deliveries (tenant_id, delivery_id, alert_id, body, state, attempts, created_at,
         ended_at)
       select tenant_id, delivery_id, 'alr' || delivery_id, '',
         case when ended_at is null then 'pending' else 'delivered' end, 2, created_at, ended_at
       from unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[])
         as d (tenant_id, delivery_id, created_at, ended_at)
       returning delivery_id, created_at
     )
     insert into delivery_attempts (delivery_id, delivery_created_at, attempt, at, duration_ms)
     select delivery_id, created_at, attempt, created_at, 1
     from made, generate_series(1, 2) as attempt`,
    [
      made.map(({ tenant }) => tenant),
      made.map(({ id }) => id),
      made.map(({ createdAtMs }) => new Date(createdAtMs)),
      made.map(({ endedAtMs }) => (endedAtMs === null ? null : new Date(endedAtMs))),
    ],
  )
  return made.map(({ id }) => id)
}

/** What ended a minute after it was created, on the tenth of a month. */
const ended = (tenant: Tenant, ago: number): Row => {
  const createdAtMs = monthStart(ago).getTime() + 9 * dayMs
  return { tenant, createdAtMs, endedAtMs: createdAtMs + 60_000 }
}

async function texts(sql: string): Promise<string[]> {
  const { rows } = await database.postgres.query<{ text: string }>(sql)
  return rows.map(({ text }) => text)
}
const listIds = () => texts('select delivery_id as text from deliveries order by 1')
/** The months that have a partition. */
const listMonths = () =>
  texts(
    String.raw`select substr(relname, 12) as text from pg_class
     where relname ~ '^deliveries_\d{4}_\d{2}$' order by 1`,
  )

function toJobDeps(to: Clickhouse) {
  const { postgres } = database
  return {
    postgres,
    leases: { renewals: postgres, work: postgres },
    clickhouse: to,
    log: testLog,
    metrics,
    nowMs: () => performance.now(),
    wallMs: Date.now,
  }
}

async function runRetention(): Promise<string> {
  const { postgres } = database
  metrics = createMetrics('console')
  await postgres.query(`update retention_rounds set due_at = '-infinity'`)
  return createRetention(toJobDeps(clickhouse)).runRound()
}

async function countOf(line: RegExp): Promise<number> {
  return Number(line.exec(await metrics.registry.metrics())?.[1] ?? 0)
}

const cutoffs = () =>
  tenants.map((tenantId) => {
    const days = daysOf[tenantId]
    return { tenantId, cutoffMs: days === null ? null : Date.now() - days * dayMs }
  })

test('a new delivery and its attempts are in the partition of this month', async () => {
  const { postgres } = database
  await createDeliveryMonths(postgres)
  expect(await listMonths()).toEqual([5, 4, 3, 2, 1, 0, -1].map(nameOf))
  const [id] = await addRows([{ tenant: 'usual', createdAtMs: Date.now(), endedAtMs: null }])
  for (const table of ['deliveries', 'delivery_attempts']) {
    const found = await texts(
      `select distinct tableoid::regclass::text as text from ${table} where delivery_id = '${id}'`,
    )
    expect(found).toEqual([`${table}_${nameOf(0)}`])
  }
})

test('a month in which everything has expired is dropped with its attempts', async () => {
  const rows = await addRows([ended('brief', 5), ended('usual', 5), ended('long', 2)])
  expect(await runRetention()).toBe('done')
  expect(await listMonths()).not.toContain(nameOf(5))
  expect(await listIds()).toEqual([rows[2]])
  expect(await texts('select distinct delivery_id as text from delivery_attempts')).toEqual([
    rows[2],
  ])
  // Not row by row.
  expect(await countOf(/removed_total\{.*store="deliveries".*\} (\d+)/)).toBe(0)
  expect(await countOf(/removed_total\{.*store="delivery_months".*\} (\d+)/)).toBeGreaterThan(0)
})

test.each<[string, Row]>([
  ['is pending', { ...ended('usual', 5), endedAtMs: null }],
  ['was replayed and ended lately', { ...ended('usual', 5), endedAtMs: Date.now() - 60_000 }],
  ['belongs to a tenant that keeps all', ended('forever', 5)],
])('a month is kept while one of its deliveries %s', async (_, row) => {
  const [, kept] = await addRows([ended('usual', 5), row])
  expect(await runRetention()).toBe('done')
  expect(await listMonths()).toContain(nameOf(5))
  // The others are removed one by one.
  expect(await listIds()).toEqual([kept])
})

test('a tenant whose limit is not given keeps its months', async () => {
  const [row] = await addRows([ended('usual', 5)])
  const others = cutoffs().filter(({ tenantId }) => tenantId !== 'usual')
  for (let more = true; more; ) {
    more = (await dropExpiredDeliveryMonth(database.postgres, others)) !== null
  }
  expect(await listIds()).toEqual([row])
})

test('whatever the tenants keep, a round removes what has expired and nothing else', async () => {
  const anyRow = fc.record({
    tenant: fc.constantFrom(...tenants),
    // The sixth month before this one has no partition.
    ageMs: fc.integer({ min: 0, max: 200 * dayMs }),
    lastedMs: fc.option(
      fc.oneof(fc.integer({ min: 0, max: 3_600_000 }), fc.integer({ min: 0, max: 200 * dayMs })),
    ),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(anyRow, { minLength: 1, maxLength: 40 }), async (made) => {
      await resetRows()
      const nowMs = Date.now()
      const rows = made.map(({ tenant, ageMs, lastedMs }): Row => {
        const createdAtMs = nowMs - ageMs
        const endedAtMs = lastedMs === null ? null : Math.min(createdAtMs + lastedMs, nowMs)
        return { tenant, createdAtMs, endedAtMs }
      })
      const all = await addRows(rows)
      expect(await runRetention()).toBe('done')
      const isKept = ({ tenant, endedAtMs }: Row) => {
        const days = daysOf[tenant]
        // A round takes less than a minute.
        return endedAtMs === null || days === null || endedAtMs >= nowMs - days * dayMs + 60_000
      }
      const isOnEdge = ({ tenant, endedAtMs }: Row) => {
        const days = daysOf[tenant]
        if (endedAtMs === null || days === null) return false
        return Math.abs(endedAtMs - (nowMs - days * dayMs)) < 60_000
      }
      const certain = all.filter((_, at) => !isOnEdge(rows[at]!))
      const kept = all.filter((_, at) => isKept(rows[at]!))
      const left = await listIds()
      expect(left.filter((id) => certain.includes(id))).toEqual(
        kept.filter((id) => certain.includes(id)).sort(),
      )
      expect(
        await texts('select distinct delivery_id as text from delivery_attempts order by 1'),
      ).toEqual(left)
    }),
    { numRuns: 15 },
  )
})

test('deliveries of a month without a partition are in the default one and expire there', async () => {
  const { postgres } = database
  const old = monthStart(20)
  const row = { createdAtMs: old.getTime(), endedAtMs: old.getTime() + 1_000 }
  const [expired, kept] = await addRows([
    { tenant: 'usual', ...row },
    { tenant: 'forever', ...row },
  ])
  expect(
    await texts(
      `select tableoid::regclass::text as text from deliveries where delivery_id = '${expired}'`,
    ),
  ).toEqual(['deliveries_default'])
  // Its rows are in the way of the partition: it is not created, and that is no failure.
  await createMonth(20)
  expect(await listMonths()).not.toContain(nameOf(20))
  expect(await runRetention()).toBe('done')
  expect(await listIds()).toEqual([kept])
  // Without them it is.
  await postgres.query('delete from deliveries')
  await createMonth(20)
  expect(await listMonths()).toContain(nameOf(20))
})

test('the copy loses a dropped month and no more, also when a round is repeated', async () => {
  const { postgres } = database
  const replicate = (to: Clickhouse) => {
    metrics = createMetrics('console')
    return createReplication(toJobDeps(to)).runRound()
  }
  const copied = async () => {
    const result = await clickhouse.query({
      query: 'select delivery_id from deliveries_replica final order by 1',
      format: 'JSONCompactEachRow',
    })
    return (await result.json<[string]>()).map(([id]) => id)
  }
  const made = await addRows([
    ended('brief', 5),
    ended('usual', 5),
    ended('brief', 4),
    ended('forever', 4),
    ended('usual', 0),
  ])
  await postgres.query('update replication_state set replicated_snapshot = null')
  await replicate(clickhouse)
  expect(await copied()).toEqual([...made].sort())
  expect(await runRetention()).toBe('done')
  // Dated into the dropped month, but created after it was dropped.
  const [later] = await addRows([ended('forever', 5)])
  await postgres.query(`insert into replication_changes (delivery_id) values ('${later}')`)
  const dying = {
    ...clickhouse,
    query: clickhouse.query.bind(clickhouse),
    command: clickhouse.command.bind(clickhouse),
    insert: (async (rows) => {
      if (rows.table === 'replication_rounds') throw new Error('killed')
      return clickhouse.insert(rows)
    }) as typeof clickhouse.insert,
  } as unknown as Clickhouse
  await expect(replicate(dying)).rejects.toThrow('killed')
  await replicate(clickhouse)
  expect(await listIds()).toEqual([later, made[3], made[4]].sort())
  expect(await copied()).toEqual(await listIds())
})

test('a month in use is dropped later, and claims do not wait for that', async () => {
  const { postgres } = database
  await addRows([ended('usual', 5)])
  await createDeliveryMonths(postgres)
  await postgres.query(`drop table deliveries_${nameOf(-1)}, delivery_attempts_${nameOf(-1)}`)
  await postgres.transaction(async (tx) => {
    await tx.query('select from deliveries limit 1')
    expect(await runRetention()).toBe('failed')
    expect(await countOf(/failures_total\{.*store="delivery_months".*\} (\d+)/)).toBe(1)
    // Each has a lock timeout of its own, since later statements queue behind it.
    for (const change of [createDeliveryMonths, dropExpiredDeliveryMonth] as const) {
      const changed = postgres.transaction(async (other) => {
        await other.query('set local lock_timeout = 0')
        await change(other, cutoffs())
      })
      await expect(changed).rejects.toSatisfy((error) =>
        isSqlState(error, sqlStates.lockNotAvailable),
      )
    }
  })
  expect(await runRetention()).toBe('done')
  const months = await listMonths()
  expect(months).not.toContain(nameOf(5))
  expect(months).toContain(nameOf(-1))
})

const isWaiting = async () =>
  (await texts(`select 'x' as text from pg_locks where not granted`)).length > 0

test('a month is not dropped when a replay commits while the drop waits', async () => {
  const { postgres } = database
  const [id] = await addRows([ended('usual', 5)])
  let dropped: Promise<string | null> = Promise.resolve(null)
  await postgres.transaction(async (tx) => {
    const scope = { sinceMs: null, onlyFailed: false }
    const progress = await beginReplay(tx)
    await replayNext(tx, { tenantId: 'usual', scope, progress })
    // The months before this one are dropped first; they are empty.
    dropped = dropExpiredDeliveryMonth(postgres, cutoffs())
    dropped.catch(() => undefined)
    await until('the drop waits', isWaiting)
  })
  // It gives up when the commit takes longer than its lock may wait.
  await dropped.catch(() => null)
  expect(await listIds()).toEqual([id])
})

test('a delivery that retention removed is created once by concurrent replays', async () => {
  const { postgres } = database
  const candidate = makeAlertCandidate({ tenantId: 'usual', sessionId: 'session-1' })
  await raiseAlerts(postgres, [candidate], Date.now)
  await postgres.query('delete from deliveries')
  const { alertId } = candidate
  const replay = (tx: Queryable) => replayAlert(tx, { tenantId: 'usual', alertId })
  let second: ReturnType<typeof replay> = Promise.resolve(null)
  let isOver = false
  const first = await postgres.transaction(async (tx) => {
    const made = await replay(tx)
    second = postgres.transaction(replay)
    void second.finally(() => {
      isOver = true
    })
    await until('the other replay waits', async () => isOver || isWaiting())
    return made
  })
  const replayed = { deliveryIds: [toDeliveryId(alertId)], replayed: 1 }
  expect([first, await second]).toEqual([replayed, replayed])
  expect(await listIds()).toEqual([toDeliveryId(alertId)])
})

describe('without statistics of the whole table, which Postgres does not gather,', () => {
  const some = 20
  const many = 30_000
  const idOf = (n: number) => `alr_${n}`

  /** Deliveries of this month with an attempt each, all ended lately but the first ones. */
  async function addMany(): Promise<void> {
    const { postgres } = database
    await postgres.query(
      `with made as (
         insert into deliveries (tenant_id, delivery_id, alert_id, body, state, attempts,
           created_at, ended_at)
         select 'usual', 'dlv_' || n, 'alr_' || n, '', 'delivered', 1, now() - n * interval '1 ms',
           case when n <= $1 then now() - interval '40 days' else now() end
         from generate_series(1, $2::integer) as n
         returning delivery_id, created_at
       )
       insert into delivery_attempts (delivery_id, delivery_created_at, attempt, at, duration_ms)
       select delivery_id, created_at, 1, now(), 1 from made`,
      [some, many],
    )
    await postgres.query(
      `insert into alerts (tenant_id, alert_id, seq, device_id, session_id, event_id, action,
         risk_score, rasp_score, reasons, policy_version, disposition, created_at)
       select 'usual', 'alr_' || n, n, 'device-1', 's-' || n, 'evt_' || n, 'BLOCK', 90, 90, '[]', 1,
         'OPEN', now() - n * interval '1 ms'
           - case when n <= $1 then interval '40 days' else '0' end
       from generate_series(1, $2::integer) as n`,
      [some, many],
    )
    await postgres.query('insert into alert_sequences values ($1, $2)', ['usual', many])
    // A month in which all have expired; not even analyzed.
    await postgres.query(
      `insert into deliveries (tenant_id, delivery_id, alert_id, body, state, attempts, created_at,
         ended_at)
       select 'usual', 'dlv_old_' || n, 'alr_old_' || n, '', 'delivered', 1, at, at
       from generate_series(1, $2::integer) as n
       cross join lateral (select $1::timestamptz + n * interval '1 s' as at) as created`,
      [monthStart(5), many],
    )
    for (const table of ['deliveries', 'delivery_attempts']) {
      await postgres.query(`analyze ${table}_${nameOf(0)}`)
    }
    await postgres.query('analyze alerts')
  }

  type Step = (tx: Session) => Promise<unknown>
  const overdue = { tenantId: 'usual', cutoffMs: Date.now() - 30 * dayMs }
  const keys = Array.from({ length: some }, (_, n) => ({ tenantId: 'usual', alertId: idOf(n) }))
  const steps: Record<string, Step> = {
    'replication of deliveries': async (tx) => {
      await preferKeyLookups(tx)
      await readDeliveries(
        tx,
        keys.map(({ alertId }) => alertId.replace('alr', 'dlv')),
      )
    },
    'replication of alerts': async (tx) => {
      await preferKeyLookups(tx)
      await readDeliveriesOfAlerts(tx, keys)
    },
    'a replay': async (tx) => {
      const { rows } = await tx.query<{ us: number }>(
        `select (extract(epoch from created_at) * 1000000)::bigint as us from deliveries
         where delivery_id = 'dlv_${many}'`,
      )
      const progress = { untilUs: rows[0]!.us + some * 1_000, after: null }
      const scope = { sinceMs: Date.now() - dayMs, onlyFailed: false }
      await replayNext(tx, { tenantId: 'usual', scope, progress })
    },
    'the search for what has expired': async (tx) => findOverdue(tx, 'deliveries', [overdue]),
    'the look for months to drop': async (tx) => {
      const { rows } = await tx.query<{ keeps: boolean }>(
        'select keeps_deliveries($1::date, $2::text[], $3::timestamptz[]) as keeps',
        [monthStart(5), tenants, tenants.map(() => new Date(overdue.cutoffMs))],
      )
      expect(rows[0]!.keeps).toBe(false)
    },
    'the removal of deliveries': async (tx) => removeDeliveries(tx, overdue, some),
    'the removal of alerts': async (tx) => removeAlerts(tx as Postgres, overdue, some),
    'an erasure': async (tx) => {
      const subject = { kind: 'user', tenantId: 'usual', id: 'nobody' } as const
      const eventIds = keys.map((_, n) => `evt_${n + 1}`)
      const erasable = { subject, eventIds, sessionIds: [] }
      await countErasableAlerts(tx, erasable)
      await eraseAlerts(tx, erasable)
    },
  }

  async function countFetched(tx: Queryable): Promise<number> {
    const { rows } = await tx.query<{ fetched: number }>(
      `select sum(idx_tup_fetch + seq_tup_read)::float8 as fetched
       from pg_stat_xact_user_tables where relname like 'deliver%'`,
    )
    return rows[0]!.fetched
  }

  test('each statement reads only its own rows', async () => {
    await addMany()
    const undone = new Error('undone')
    const tooMany: string[] = []
    for (const [name, step] of Object.entries(steps)) {
      const read = database.postgres.transaction(async (tx) => {
        // The counters of a transaction may begin with those of the one before.
        const before = await countFetched(tx)
        await step({ query: tx.query, transaction: (work) => work(tx) })
        const fetched = (await countFetched(tx)) - before
        if (fetched === 0 || fetched > some * 10) tooMany.push(`${name}: ${fetched}`)
        throw undone
      })
      await expect(read).rejects.toBe(undone)
    }
    expect(tooMany).toEqual([])
  })
})
