/**
 * `npm run bench -- inserts [--rows 500,4000] [--events 120000] [--rounds 2]
 * [--connected]`: the CPU of ClickHouse for an insert of the scorer, with all merges that follow,
 * beside the same inserts while merges are stopped; and the rows that those merges rewrite. Each on
 * a new server. `--connected` gives every event a connection.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import {
  type Clickhouse,
  createClickhouse,
  insertRowBinary,
} from '#shared/io/clickhouse/clickhouse.ts'
import { telemetryInsert } from '#shared/io/telemetry/telemetry-store.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { migrateClickhouse } from '../../support/servers/databases.ts'
import { readCpuSeconds } from '../measured-process.ts'
import { type Check, type Figure, publishReport, readClickhouseVersion } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'
import { alertEvery, eventsPerDevice } from './drain-events.ts'
import { makeDrainRows, toInserts } from './drain-rows.ts'
import { untilMergesEnd } from './merges.ts'

/** Pause between two inserts, about that of a scorer, in which merges run. */
const pauseMs = 50
const mergeLimitMs = 300_000

/** The result of one round; the CPU is per insert. */
type Costs = { cpuMs: number; mergedRows: number; parts: number; stored: number; version: string }

type Measured = { rowsPerInsert: number; events: number; merged: Costs[]; unmerged: Costs[] }

export async function run(args: string[] = []): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      rows: { type: 'string', default: '500,4000' },
      events: { type: 'string', default: '120000' },
      rounds: { type: 'string', default: '2' },
      connected: { type: 'boolean', default: false },
    },
  })
  const unit = eventsPerDevice * alertEvery
  const events = Math.ceil(Number(values.events) / unit) * unit
  const { connected } = values
  const rows = [...makeDrainRows({ events, alerting: false, startedAtMs: Date.now(), connected })]
  const measured: Measured[] = []
  for (const rowsPerInsert of values.rows.split(',').map(Number)) {
    const inserts = toInserts(rows, rowsPerInsert)
    const one: Measured = { rowsPerInsert, events, merged: [], unmerged: [] }
    for (let round = 0; round < Number(values.rounds); round++) {
      one.merged.push(await measure(inserts, true))
      one.unmerged.push(await measure(inserts, false))
    }
    measured.push(one)
  }
  publishReport({
    part: 'inserts',
    command: ['npm run bench -- inserts', ...args].join(' '),
    versions: { clickhouse: measured[0]!.merged[0]!.version },
    durability: 'ClickHouse as it comes',
    figures: measured.flatMap(toFigures),
    checks: measured.flatMap(toChecks),
  })
}

function toFigures({ rowsPerInsert, events, merged, unmerged }: Measured): Figure[] {
  const name = `inserts of ${rowsPerInsert} rows`
  const spent = merged.map(({ cpuMs }) => cpuMs)
  const baseline = unmerged.map(({ cpuMs }) => cpuMs)
  return [
    {
      name: `${name}, CPU of one and its merges`,
      unit: 'ms',
      value: toSpread(spent),
      baseline: { name: 'while nothing is merged', value: toSpread(baseline) },
      ratio: toRatios(spent, baseline),
    },
    {
      name: `${name}, CPU of an event`,
      unit: 'µs',
      value: toSpread(spent.map((ms) => (ms * 1_000) / rowsPerInsert)),
    },
    {
      name: `${name}, rows merged for an event`,
      unit: 'rows',
      value: toSpread(merged.map(({ mergedRows }) => mergedRows / events)),
    },
    {
      name: `${name}, parts in the end`,
      unit: 'parts',
      value: toSpread(merged.map(({ parts }) => parts)),
    },
  ]
}

function toChecks({ rowsPerInsert, events, merged, unmerged }: Measured): Check[] {
  const name = `inserts of ${rowsPerInsert} rows`
  const stored = [...merged, ...unmerged].map((one) => one.stored)
  const rewritten = [merged, unmerged].map((some) => some.map(({ mergedRows }) => mergedRows))
  return [
    {
      name: `${name}: every event is stored`,
      ok: stored.every((count) => count === events),
      detail: `${stored.join(', ')} of ${events}`,
    },
    {
      name: `${name}: rows are merged, and none where merges are stopped`,
      ok: rewritten[0]!.every((rows) => rows > 0) && rewritten[1]!.every((rows) => rows === 0),
      detail: rewritten.map((rows) => rows.join(', ')).join('; '),
    },
  ]
}

async function measure(inserts: readonly Buffer[], merging: boolean): Promise<Costs> {
  const server = await startClickhouse()
  try {
    await migrateClickhouse(server.url)
    const clickhouse = createClickhouse(server.url, { name: 'bench' })
    if (!merging) await clickhouse.command({ query: 'system stop merges' })
    const { into, settings } = telemetryInsert
    const mergedBefore = await readMergedRows(clickhouse)
    const begun = readCpuSeconds(server.pid)
    for (const rows of inserts) {
      await insertRowBinary(clickhouse, into, rows, settings)
      await pause(pauseMs)
    }
    if (merging) await untilMergesEnd(clickhouse, mergeLimitMs)
    const cpuMs = ((readCpuSeconds(server.pid) - begun) * 1_000) / inserts.length
    const [parts] = await readNumbers(clickhouse, 'select count() from system.parts where active')
    const [stored] = await readNumbers(clickhouse, 'select uniqExact(event_id) from telemetry')
    const mergedRows = (await readMergedRows(clickhouse)) - mergedBefore
    const version = await readClickhouseVersion(clickhouse)
    await clickhouse.close()
    return { cpuMs, mergedRows, parts: parts!, stored: stored!, version }
  } finally {
    await server.stop()
  }
}

async function readNumbers(clickhouse: Clickhouse, query: string): Promise<number[]> {
  const result = await clickhouse.query({ query, format: 'JSONCompactEachRow' })
  const [row] = await result.json<(number | string)[]>()
  return row!.map(Number)
}

async function readMergedRows(clickhouse: Clickhouse): Promise<number> {
  const query = "select sum(value) from system.events where event = 'MergedRows'"
  return (await readNumbers(clickhouse, query))[0]!
}
