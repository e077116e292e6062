/**
 * The floor of the drain benchmark, a process of its own: rows that were encoded beforehand, as the
 * telemetry store encodes them, inserted through `@clickhouse/client` into the same tables, one
 * insert after another and nothing else.
 */
import { createClickhouse, insertRowBinary } from '#shared/io/clickhouse.ts'
import { telemetryInsert } from '#shared/io/telemetry-store.ts'
import type { DrainEvents } from './drain-events.ts'
import { makeDrainRows, toInserts } from './drain-rows.ts'

/** What this process is told; it answers each with one message. */
export type FloorOrder =
  | { do: 'encode'; options: DrainEvents }
  | { do: 'insert'; url: string; rowsPerInsert: number }

export type FloorResult = { eventsPerSecond: number; inserts: number; cpuUs: number }

/** Each row by itself: how many go into one insert is known only later. */
let rows: Buffer[] = []

async function insert(url: string, rowsPerInsert: number): Promise<FloorResult> {
  const clickhouse = createClickhouse(url, { name: 'bench' })
  const batches = toInserts(rows, rowsPerInsert)
  const { into, settings } = telemetryInsert
  await insertRowBinary(clickhouse, into, batches[0]!, settings)
  // From the first that is stored, as the drain is timed.
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

process.on('message', async (order: FloorOrder) => {
  if (order.do === 'encode') {
    rows = [...makeDrainRows(order.options)]
    process.send!({ rows: rows.length })
  } else process.send!(await insert(order.url, order.rowsPerInsert))
})
process.on('disconnect', () => process.exit(0))
process.send!({ ready: true })
