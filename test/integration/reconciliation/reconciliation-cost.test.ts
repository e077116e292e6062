// The cost of reconciling the last hours is bounded by those hours, with any amount of older data.
// And of several consoles one runs reconciliation.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createProver } from '#shared/io/keys/proofs.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import {
  createReconciliationStore,
  type ReconciliationStore,
} from '#shared/io/reconciliation/reconciliation-store.ts'
import { createReconciliation } from '../../../services/console/jobs/reconciliation/reconciliation.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const weekMs = 7 * dayMs
const eventsPerHour = 40
const atMs = Math.floor(Date.now() / hourMs) * hourMs
/** The last hours, and those of an edge whose clock is ahead. */
const recent = { fromMs: atMs - 3 * hourMs, toMs: atMs + dayMs }

const reportProver = createProver([randomBytes(32).toString('base64')])

let server: TestClickhouse
let clickhouse: Clickhouse
let store: ReconciliationStore

beforeAll(async () => {
  server = await startClickhouse({ isMigrated: true })
  clickhouse = createClickhouse(server.url, { name: 'test' })
  store = createReconciliationStore(clickhouse, 'analytics')
  // The query reads all parts with a row of these hours. Here the few rows of a month would be
  // merged into one part at once.
  await clickhouse.command({ query: 'system stop merges telemetry' })
  await clickhouse.command({
    query: 'insert into reconciliation_watermarks values (now64(3), 1, 1000000000000000)',
  })
  await clickhouse.command({
    query:
      'insert into replication_rounds (singleton, round, replicated_at) values (0, 1, now64(3) + 1)',
  })
})
afterAll(async () => {
  await clickhouse?.close()
  await server?.stop()
})

/**
 * One day of a tenant, every event with an alert and its delivery; one part per day, as inserts
 * make them.
 */
async function insertDay(daysAgo: number): Promise<void> {
  const start = `toDateTime(${(atMs - (daysAgo + 1) * dayMs) / 1_000})`
  const at = `(${start} + number * ${hourMs / 1_000 / eventsPerHour})`
  const streamOffset = `${daysAgo + 1} * 1000000 + number * 2`
  const id = `hex(sipHash64(number, ${daysAgo}))`
  const numbers = `from numbers(${24 * eventsPerHour})`
  for (const into of [
    `reconciliation_entries select 'acme', toStartOfHour(${at}), 'stored', 1, ${streamOffset}, 0, 1, 0,
       [toFixedString(toString(number), 17)], [0] ${numbers}`,
    `reconciliation_entries select 'acme', toStartOfHour(${at}), 'decided', 1, ${streamOffset}, 0, 1, 0, [], []
       ${numbers}`,
    `reconciliation_expected_alerts (tenant_id, alert_id, first, day)
       select 'acme', concat('alr_', ${id}), (${streamOffset}, toStartOfHour(${at})), toDate(${at})
       ${numbers}`,
    `telemetry (tenant_id, device_id, session_id, event_id, received_at, stream_offset)
       select 'acme', ${id}, 's', concat('evt_', ${id}), ${at}, ${streamOffset} ${numbers}`,
    `alerts_replica (tenant_id, alert_id, created_at)
       select 'acme', concat('alr_', ${id}), ${at} ${numbers}`,
    `deliveries_replica (tenant_id, delivery_id, alert_id, event, created_at)
       select 'acme', concat('dlv_', ${id}), concat('alr_', ${id}), 'risk.alert', ${at} ${numbers}`,
  ]) {
    await clickhouse.command({ query: `insert into ${into}` })
  }
}

/** Rows read by the queries of some work. */
async function countRead(work: () => Promise<unknown>): Promise<number> {
  let rows = 0
  const counted = Object.create(clickhouse, {
    query: {
      value: async (...params: Parameters<Clickhouse['query']>) => {
        const result = await clickhouse.query(...params)
        const summary = String(result.response_headers['x-clickhouse-summary'])
        rows += Number((JSON.parse(summary) as { read_rows: string }).read_rows)
        return result
      },
    },
  }) as Clickhouse
  store = createReconciliationStore(counted, 'analytics')
  await work()
  store = createReconciliationStore(clickhouse, 'analytics')
  return rows
}

describe('reconciling the last hours', () => {
  it('reads no more after a month than after a week, with the same result', async () => {
    for (let day = 0; day < 7; day++) await insertDay(day)
    const week = await countRead(() => store.readReconciliation(recent))
    const before = await store.readReconciliation(recent)
    expect(before.hours).toHaveLength(3)
    for (const hour of before.hours) {
      expect(hour).toMatchObject({ stored: 40, rows: 40, decided: 40, alerts: 40 })
      expect(hour).toMatchObject({ alertsExpected: 40, deliveries: 40, differences: [] })
    }
    for (let day = 7; day < 28; day++) await insertDay(day)
    const month = await countRead(() => store.readReconciliation(recent))
    process.stdout.write(`a look reads ${week} rows after a week, ${month} after four\n`)
    expect((await store.readReconciliation(recent)).hours).toEqual(before.hours)
    expect(month).toBeLessThan(week * 1.2)
  })

  it('gives for every hour the same counts as the analysts’ view', async () => {
    const { hours } = await store.readReconciliation({
      fromMs: atMs - 28 * dayMs,
      toMs: atMs + dayMs,
    })
    const parts = []
    for (let week = 3; week >= 0; week--) {
      const toMs = atMs - week * weekMs
      parts.push(...(await store.readReconciliation({ fromMs: toMs - weekMs, toMs })).hours)
    }
    const byHour = (a: { hourMs: number }, b: { hourMs: number }) => a.hourMs - b.hourMs
    expect(parts.sort(byHour)).toEqual(hours.sort(byHour))
    const result = await clickhouse.query({
      query: `select toUnixTimestamp(hour) * 1000, stored, rows, decided, alerts_due, alerts,
                deliveries from analytics.reconciliation order by hour`,
      format: 'JSONCompactEachRow',
    })
    expect(await result.json()).toEqual(
      hours.map((one) => [
        ...[one.hourMs, one.stored, one.rows, one.decided],
        ...[one.alertsExpected, one.alerts, one.deliveries],
      ]),
    )
  })
})

it('expected alerts are removed by day once reconciliation has compared them', async () => {
  const { rows } = await clickhouse
    .query({ query: `show create table reconciliation_expected_alerts`, format: 'JSONCompact' })
    .then((result) => result.json<[string]>())
    .then(({ data }) => ({ rows: data }))
  expect(rows[0]![0]).toMatch(/TTL day \+ toIntervalDay\(40\)/)
})

describe('several consoles', () => {
  let postgresServer: TestPostgres
  let postgres: Postgres

  beforeAll(async () => {
    postgresServer = await startPostgres()
    const url = await postgresServer.createMigratedDatabase()
    postgres = createPostgres(url, { role: 'test', log: testLog })
  })
  afterAll(async () => {
    await postgres?.close()
    await postgresServer?.stop()
  })

  it('run reconciliation on one of them, and another takes over when it stops', async () => {
    const looks = [0, 0]
    const start = (index: number) =>
      createReconciliation({
        findNats: () => null,
        postgres,
        leases: { renewals: postgres, work: postgres },
        clickhouse,
        store: {
          ...store,
          readReconciliation: async (span) => {
            looks[index]!++
            return store.readReconciliation(span)
          },
        },
        reportProver,
        log: testLog,
        metrics: createMetrics('console'),
        nowMs: () => performance.now(),
        wallMs: Date.now,
        confirmMs: 1,
      }).start()
    const first = start(0)
    await until('the first compares', () => looks[0]! > 0)
    const second = start(1)
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    expect(looks[1]).toBe(0)
    await first.stop()
    const seen = looks[0]
    await until('the second has taken over', () => looks[1]! > 0)
    expect(looks[0]).toBe(seen)
    await second.stop()
  })
})
