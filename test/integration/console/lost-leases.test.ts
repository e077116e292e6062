// Each job of the console, when it loses its lease before or between its writes: it writes nothing
// more, in Postgres and in ClickHouse. Real servers; the lease is taken away after so many writes.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hourMs } from '#shared/core/base/instants.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import type { Leases } from '#shared/io/leases/leases.ts'
import type { Postgres, Queryable, Sql } from '#shared/io/postgres/postgres.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createReconciliationStore } from '#shared/io/reconciliation/reconciliation-store.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { createHourlyCounts } from '../../../services/console/jobs/hourly-counts.ts'
import { createPrevalenceSpikes } from '../../../services/console/jobs/prevalence-spikes.ts'
import { createReconciliation } from '../../../services/console/jobs/reconciliation/reconciliation.ts'
import { createRemovals } from '../../../services/console/jobs/removals.ts'
import { createReplication } from '../../../services/console/jobs/replication.ts'
import { createRetention } from '../../../services/console/jobs/retention.ts'
import { createBacktests } from '../../../services/console/policies/backtest.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { until } from '../../support/process/until.ts'
import { makeEvents } from '../../support/telemetry/accepted-events.ts'
import {
  createTestErasures,
  erasureSealer,
  requestForTest,
} from '../../support/telemetry/erase-now.ts'
import { createScorerRig, type ScorerRig } from '../../support/telemetry/scorer-rig.ts'

let rig: ScorerRig

beforeAll(async () => {
  rig = await createScorerRig()
  await rig.addTenant('acme')
  const hour = Math.floor(Date.now() / hourMs) * hourMs - 2 * hourMs
  const events = makeEvents([{ tenantId: 'acme', receivedAtMs: hour + 5 }], 7)
  await createTelemetryStore(rig.clickhouse).insertTelemetry(events)
  await rig.clickhouse.command({
    query: `insert into reconciliation_watermarks (at, stream, stream_offset)
      select now64(3), 1, max(stream_offset) + 1 from telemetry`,
  })
  await requestForTest(rig, { tenantId: 'acme', kind: 'device', id: 'absent' })
})
afterAll(() => rig?.close())

/** As long as a test may see it end. */
const leaseMs = 400

const toText = (sql: string | Sql) => (typeof sql === 'string' ? sql : sql.text)
const isWrite = (text: string) =>
  /\binsert into\b|\bdelete from\b|(^|\()\s*update\s|_expired_|create_delivery_months/.test(text) &&
  !/\bleases\b/.test(text)

type Stores = { postgres: Postgres; clickhouse: Clickhouse; leases: Leases; writes: string[] }

/** The rig's stores: after the write of this number the lease is gone, and its holder knows. */
function watchStores(loseAfter: number): Stores {
  const writes: string[] = []
  let told = 0
  const lose = async () => {
    const before = told
    const { rowCount } = await rig.postgres.query('delete from leases')
    await until('its holder knows', () => told >= before + rowCount)
  }
  const note = async (text: string) => {
    writes.push(text)
    if (writes.length === loseAfter) await lose()
  }
  const work: Postgres = {
    ...rig.postgres,
    query: async (sql, values) => {
      const answer = await rig.postgres.query<never>(sql, values)
      if (isWrite(toText(sql))) await note(toText(sql))
      return answer
    },
    transaction: async (run) => {
      const texts: string[] = []
      const answer = await rig.postgres.transaction((tx) => {
        const query: Queryable['query'] = (sql, values) => {
          if (isWrite(toText(sql))) texts.push(toText(sql))
          return tx.query(sql, values)
        }
        return run({ query })
      })
      for (const text of texts) await note(text)
      return answer
    },
  }
  const renewals: Postgres = {
    ...rig.postgres,
    query: async (sql, values) => {
      const sentMs = performance.now()
      const answer = await rig.postgres.query<never>(sql, values)
      const text = toText(sql)
      if (/^update leases/.test(text) && answer.rowCount === 0) told++
      if (/^insert into leases/.test(text) && answer.rowCount === 1 && loseAfter === 0) {
        await rig.postgres.query('delete from leases')
        // As long as the process hangs before it goes on.
        await until('a lease would have ended', () => performance.now() - sentMs > leaseMs)
      }
      return answer
    },
  }
  const clickhouse: Clickhouse = {
    ...rig.clickhouse,
    insert: async (params) => {
      const answer = await rig.clickhouse.insert(params)
      await note(`insert ${params.table}`)
      return answer
    },
    command: async (params) => {
      const answer = await rig.clickhouse.command(params)
      await note(params.query)
      return answer
    },
  }
  return { postgres: work, clickhouse, leases: { renewals, work, leaseMs }, writes }
}

const toDeps = (stores: Stores) => ({
  ...stores,
  findNats: () => rig.nats,
  sealer: erasureSealer,
  log: testLog,
  metrics: createMetrics('test'),
  nowMs: () => performance.now(),
  wallMs: Date.now,
})

let checks = 0

const jobs: Record<string, (stores: Stores) => Promise<unknown>> = {
  replication: (stores) => createReplication(toDeps(stores)).runRound(),
  'hourly counts': (stores) => createHourlyCounts(toDeps(stores)).runRound(),
  'prevalence spikes': (stores) => {
    // Each check is an hour after the one before.
    const wallMs = () => Date.now() + ++checks * hourMs
    return createPrevalenceSpikes({ ...toDeps(stores), wallMs }).runRound()
  },
  retention: (stores) => createRetention(toDeps(stores)).runRound(),
  removals: (stores) => createRemovals(toDeps(stores)).runRound(),
  reconciliation: (stores) => {
    let atMs = 0
    return createReconciliation({
      ...toDeps(stores),
      store: createReconciliationStore(stores.clickhouse, 'analytics'),
      reportProver: erasureSealer.proverOf('edge report'),
      // Its waits are over at once.
      nowMs: () => (atMs += 60_000),
    }).advance()
  },
  'a backtest': async (stores) => {
    const request = { tenantId: 'acme', policy: defaultPolicy, sinceMs: null, requestId: 'req_1' }
    const run = await createBacktests(toDeps(stores)).start(request)
    return Array.fromAsync(run.lines())
  },
  'an erasure': (stores) => createTestErasures(rig, stores).runNext('acme'),
}

describe.each(Object.entries(jobs))('%s', (_, run) => {
  it.each([0, 1, 2])('writes nothing once its lease is lost after %i writes', async (loseAfter) => {
    const stores = watchStores(loseAfter)
    await run(stores).catch(() => undefined)
    expect(stores.writes.slice(loseAfter)).toEqual([])
  })

  it('writes while it has its lease', async () => {
    const stores = watchStores(Number.POSITIVE_INFINITY)
    await run(stores)
    expect(stores.writes).not.toEqual([])
  })
})
