/**
 * Gauges of ages that alert rules watch grow while their store is away, from the start of the
 * process on: none claims 0 before the age is known.
 */
import { expect, it } from 'vitest'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { type Postgres, PostgresUnavailableError } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics, type Metrics } from '#shared/io/process/metrics.ts'
import { createDifferenceGauge } from '../../../services/console/jobs/reconciliation/difference-gauge.ts'
import { createReplication } from '../../../services/console/jobs/replication.ts'
import { startSweep } from '../../../services/delivery/claim/sweep.ts'
import { createDeliveryMetrics } from '../../../services/delivery/metrics.ts'
import { waitFor } from '../../support/process/wait-for.ts'

const testLog = createLog('test', 'silent')

const away = () => Promise.reject(new PostgresUnavailableError(new Error('away')))
const postgres = { query: away, transaction: away, withSession: away } as unknown as Postgres

async function readGauge(metrics: Metrics, name: string): Promise<number> {
  const found = await metrics.registry.getSingleMetric(name)!.get()
  return found.values[0]!.value
}

it('a console that never replicated shows an age since its start', async () => {
  const metrics = createMetrics('console', { isThread: true })
  let wallMs = 1_000_000
  const replication = createReplication({
    postgres,
    leases: { renewals: postgres, work: postgres },
    clickhouse: {} as Clickhouse,
    log: testLog,
    metrics,
    nowMs: () => wallMs,
    wallMs: () => wallMs,
  })
  wallMs += 300_000
  await expect(replication.runRound()).rejects.toThrow(PostgresUnavailableError)
  expect(await readGauge(metrics, 'di_replication_lag_seconds')).toBe(300)
})

it('a console that never compared the stages shows an age since its start', async () => {
  const metrics = createMetrics('console', { isThread: true })
  let nowMs = 1_000
  const gauge = createDifferenceGauge(metrics, () => nowMs)
  nowMs += 900_000
  gauge.reset()
  expect(await readGauge(metrics, 'di_reconciliation_age_seconds')).toBe(900)
  gauge.replace({ fromMs: 0, toMs: 1 }, [])
  nowMs += 30_000
  expect(await readGauge(metrics, 'di_reconciliation_age_seconds')).toBe(30)
})

it('the oldest due delivery gets older with every sweep that fails, also before the first', async () => {
  const metrics = createMetrics('delivery', { isThread: true })
  let nowMs = 1_000
  let isAway = true
  const oldest = () => readGauge(metrics, 'di_delivery_oldest_due_seconds')
  const sweep = startSweep({
    findDueQueues: async () => {
      nowMs += 90_000
      return isAway ? away() : [{ tenantId: 't', retry: false, overdueMs: 7_000 }]
    },
    countDue: async () => 1,
    findFailing: async () => [],
    wake: () => undefined,
    everyMs: 1,
    monotonicMs: () => nowMs,
    log: testLog,
    metrics: createDeliveryMetrics(metrics, () => 0),
  })
  await waitFor(async () => expect(await oldest()).toBeGreaterThanOrEqual(90))
  isAway = false
  await waitFor(async () => expect(await oldest()).toBe(7))
  isAway = true
  await waitFor(async () => expect(await oldest()).toBeGreaterThanOrEqual(97))
  await sweep.stop()
})
