/**
 * The baselines of the drain benchmark, in their own process: the same rows inserted through
 * `@clickhouse/client` into the same tables, one insert after another and nothing else. Once as
 * bytes that were encoded beforehand, as the telemetry store encodes them; and once as the objects
 * that the client's own `insert` takes.
 */
import {
  type Clickhouse,
  createClickhouse,
  insertRowBinary,
} from '#shared/io/clickhouse/clickhouse.ts'
import { telemetryColumns } from '#shared/io/telemetry/telemetry-rows.ts'
import { signalsTextSettings, telemetryInsert } from '#shared/io/telemetry/telemetry-store.ts'
import type { DrainEvents } from './drain-events.ts'
import { makeDrainRows, toInserts } from './drain-rows.ts'

/** An order to this process; it answers each with one message. */
export type BaselineOrder =
  | { do: 'encode'; options: DrainEvents }
  | { do: 'insert'; url: string; rowsPerInsert: number }
  /** Inserts the rows of one database as objects into another. */
  | { do: 'insertObjects'; from: string; url: string; rowsPerInsert: number }

export type BaselineResult = { eventsPerSecond: number; inserts: number; cpuUs: number }

/** Rows are separate, because the number per insert is known only later. */
let rows: Buffer[] = []

async function insert(url: string, rowsPerInsert: number): Promise<BaselineResult> {
  const clickhouse = createClickhouse(url, { name: 'bench' })
  const batches = toInserts(rows, rowsPerInsert)
  const { into, settings } = telemetryInsert
  await insertRowBinary(clickhouse, into, batches[0]!, settings)
  // From the first stored insert, as the drain is timed.
  const cpu = process.cpuUsage()
  const begunMs = performance.now()
  for (const batch of batches.slice(1)) await insertRowBinary(clickhouse, into, batch, settings)
  const seconds = (performance.now() - begunMs) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  await clickhouse.close()
  const counted = rows.length - Math.min(rowsPerInsert, rows.length)
  return {
    eventsPerSecond: counted / seconds,
    inserts: batches.length,
    cpuUs: (user + system) / counted,
  }
}

/** Inserts whose rows are read together: objects of all of them would not fit into memory. */
const insertsPerRead = 4

type ObjectRow = Record<string, unknown>

/** As JavaScript numbers these columns would lose bits. */
const toReadable = (column: string): string =>
  column.endsWith('_bits') ? `toString(telemetry.${column}) as ${column}` : column

/**
 * The rows of a table in the order of the stream, in pages, as parsed JSON: the data of an
 * application without its own encoder.
 */
async function* readObjects(from: Clickhouse, rowsPerRead: number): AsyncGenerator<ObjectRow[]> {
  const all = await from.query({
    query: 'select stream_offset from telemetry order by stream_offset',
    format: 'JSONCompactEachRow',
  })
  const streamOffsets = (await all.json<[number]>()).map(([streamOffset]) => streamOffset)
  for (let at = 0; at < streamOffsets.length; at += rowsPerRead) {
    const last = streamOffsets[Math.min(at + rowsPerRead, streamOffsets.length) - 1]!
    const some = await from.query({
      query: `select ${telemetryColumns.map(toReadable).join(', ')} from telemetry
        where stream_offset between ${streamOffsets[at]} and ${last} order by stream_offset`,
      format: 'JSONEachRow',
    })
    yield await some.json<ObjectRow>()
  }
}

/** Only the inserts are timed: merges that continue during the next read cost them nothing. */
async function insertObjects(
  fromUrl: string,
  url: string,
  rowsPerInsert: number,
): Promise<BaselineResult> {
  const from = createClickhouse(fromUrl, { name: 'bench' })
  const clickhouse = createClickhouse(url, { name: 'bench' })
  const spent = { rows: 0, inserts: 0, ms: 0, cpu: 0 }
  for await (const some of readObjects(from, rowsPerInsert * insertsPerRead)) {
    for (let at = 0; at < some.length; at += rowsPerInsert) {
      const values = some.slice(at, at + rowsPerInsert)
      const cpu = process.cpuUsage()
      const begunMs = performance.now()
      await clickhouse.insert({
        table: 'telemetry',
        columns: telemetryColumns as [string, ...string[]],
        values,
        format: 'JSONEachRow',
        clickhouse_settings: { ...telemetryInsert.settings, ...signalsTextSettings },
      })
      // From the first stored insert, as the drain is timed.
      if (spent.inserts++ === 0) continue
      spent.ms += performance.now() - begunMs
      const { user, system } = process.cpuUsage(cpu)
      spent.cpu += user + system
      spent.rows += values.length
    }
  }
  await Promise.all([from.close(), clickhouse.close()])
  return {
    eventsPerSecond: (spent.rows / spent.ms) * 1_000,
    inserts: spent.inserts,
    cpuUs: spent.cpu / spent.rows,
  }
}

process.on('message', async (order: BaselineOrder) => {
  if (order.do === 'encode') {
    rows = [...makeDrainRows(order.options)]
    process.send!({ rows: rows.length })
  } else if (order.do === 'insert') {
    process.send!(await insert(order.url, order.rowsPerInsert))
  } else process.send!(await insertObjects(order.from, order.url, order.rowsPerInsert))
})
process.on('disconnect', () => process.exit(0))
process.send!({ ready: true })
