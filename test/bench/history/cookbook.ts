/**
 * The cookbook over ten million events of the simulated fleet, three tenants, ninety days: the
 * duration of each query for the largest tenant, cold and warm, and the rows that it reads, beside
 * one pass over the same events. A query fails when it needs more memory than an analyst may use.
 * `--events N` makes the history smaller, `--devices N` the fleet that is copied.
 */

import { parseArgs } from 'node:util'
import { analystSettings } from '#shared/core/analytics/analyst-access.ts'
import { type Question, readCookbook } from '#shared/io/analytics/cookbook.ts'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { wholeHistory } from '../../support/analytics/cookbook.ts'
import {
  fleetTenant,
  insertHistory,
  multiplyHistory,
  planHistory,
} from '../../support/analytics/fleet-history.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { migrateClickhouse } from '../../support/servers/databases.ts'
import { type Figure, publishReport, readClickhouseVersion } from '../report.ts'
import { toSpread } from '../spread.ts'

const print = (text: string) => process.stdout.write(`${text}\n`)
const seed = 7

export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      events: { type: 'string', default: '10000000' },
      devices: { type: 'string', default: '1500' },
    },
  })
  const server = await startClickhouse()
  try {
    await migrateClickhouse(server.url)
    const clickhouse = createClickhouse(server.url, { name: 'bench', requestTimeoutMs: 600_000 })
    await fill(clickhouse, Number(values.events), Number(values.devices))
    const figures = await measureAll(clickhouse)
    const clickhouseVersion = await readClickhouseVersion(clickhouse)
    await clickhouse.close()
    publishReport({
      part: 'cookbook',
      command: `npm run bench -- cookbook --events ${values.events} --devices ${values.devices}`,
      versions: { clickhouse: clickhouseVersion },
      durability: 'nothing is written',
      figures,
      checks: [],
    })
  } finally {
    await server.stop()
  }
}

async function fill(clickhouse: Clickhouse, events: number, devices: number): Promise<void> {
  const startedMs = performance.now()
  const history = planHistory(seed, devices)
  await insertHistory(clickhouse, history)
  const filled = await multiplyHistory(clickhouse, history, events)
  const seconds = (performance.now() - startedMs) / 1000
  const found = await readOne<{ events: number; devices: number; bytes: number }>(
    clickhouse,
    `select
       (select count() from analytics.events where tenant_id = '${fleetTenant}') as events,
       (select count() from analytics.devices where tenant_id = '${fleetTenant}') as devices,
       (select sum(bytes_on_disk) from system.parts where active and table = 'telemetry') as bytes`,
  )
  print(
    `${filled} events in ${seconds.toFixed(0)} s (${Math.round(filled / seconds)}/s), ` +
      `${(Number(found.bytes) / 1e9).toFixed(2)} GB; of tenant ${fleetTenant} ${found.events} ` +
      `events of ${found.devices} devices; seed ${seed}`,
  )
}

/** One pass over the tenant's events and their signals, without a result. */
const baseline: Question = {
  name: 'baseline',
  question: '',
  answer: '',
  advice: '',
  parameters: {},
  sql: `select count(), sum(length(detected_signals)), max(device_id) from analytics.events
    where tenant_id = {tenant:String}
      and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}`,
}

async function measureAll(clickhouse: Clickhouse): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const question of [baseline, ...readCookbook()]) {
    await forget(clickhouse)
    const cold = await measure(clickhouse, question)
    const warm = await measure(clickhouse, question)
    figures.push({
      name: `${question.name}: ${warm.rows} rows of ${warm.rowsRead} read, warm`,
      unit: 's',
      value: toSpread([warm.ms / 1_000]),
      baseline: { name: 'cold', value: toSpread([cold.ms / 1_000]) },
    })
  }
  return figures
}

/** Drops the engine's caches; the operating system's own cache stays. */
async function forget(clickhouse: Clickhouse): Promise<void> {
  const caches = ['mark', 'uncompressed', 'query condition', 'query', 'primary index']
  for (const cache of caches) {
    await clickhouse.command({ query: `system drop ${cache} cache` }).catch(() => undefined)
  }
}

type Measured = { ms: number; rowsRead: number; memoryMb: string; rows: number }

async function measure(clickhouse: Clickhouse, question: Question): Promise<Measured> {
  const startedMs = performance.now()
  const result = await clickhouse.query({
    query: question.sql,
    query_params: { ...wholeHistory, ...question.parameters, tenant: fleetTenant },
    // The limits of an analyst's query, except its threads, of which an analyst has one.
    clickhouse_settings: { max_memory_usage: String(analystSettings.max_memory_usage) },
    format: 'JSON',
  })
  const { rows, statistics } = await result.json<Record<string, unknown>>()
  const ms = performance.now() - startedMs
  const summary = result.response_headers['x-clickhouse-summary']
  const reported =
    typeof summary === 'string' ? (JSON.parse(summary) as Record<string, string>) : {}
  const memory = Number(reported.memory_usage ?? 0)
  return {
    ms,
    rowsRead: statistics?.rows_read ?? Number(reported.read_rows ?? 0),
    memoryMb: memory === 0 ? '-' : (memory / 1e6).toFixed(0),
    rows: rows ?? 0,
  }
}

async function readOne<Row>(clickhouse: Clickhouse, query: string): Promise<Row> {
  const result = await clickhouse.query({ query, format: 'JSONEachRow' })
  const [row] = await result.json<Row>()
  return row!
}
