/**
 * Reads the rows of a large answer in pieces, so that parsing them never holds up other requests
 * for longer than a piece takes.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ClickHouseSettings } from '@clickhouse/client'
import type { Clickhouse } from './clickhouse.ts'

export type RowsQuery = {
  /** A `select` without a format. */
  query: string
  query_params: Record<string, string | number>
  clickhouse_settings: ClickHouseSettings
  abort_signal: AbortSignal
}

const lineFeed = 0x0a

/**
 * Rows as arrays of values, as many at once as one read of the connection has: at most 64 KiB.
 * @throws when the engine fails, also in the middle of its answer, or takes too long
 */
export async function* readRowsInPieces<Row>(
  clickhouse: Clickhouse,
  { query, ...rest }: RowsQuery,
): AsyncGenerator<Row[]> {
  const { stream } = await clickhouse.exec({
    query: `${query}\nformat JSONCompactEachRow`,
    ...rest,
  })
  let begun: Buffer[] = []
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    // A line feed inside a value is escaped.
    const end = chunk.lastIndexOf(lineFeed)
    if (end === -1) {
      begun.push(chunk)
      continue
    }
    const lines = Buffer.concat([...begun, chunk.subarray(0, end)])
    begun = end + 1 < chunk.length ? [chunk.subarray(end + 1)] : []
    yield parseLines<Row>(lines)
    // One turn of the event loop may read many pieces.
    await nextTurn()
  }
  if (begun.length > 0) throw new Error(brokenOff)
}

const brokenOff = 'ClickHouse broke off its answer'

/** One parse for all of them. */
function parseLines<Row>(lines: Buffer): Row[] {
  try {
    return JSON.parse(`[${lines.toString('utf8').replaceAll('\n', ',')}]`) as Row[]
  } catch {
    // The parser's message would quote the data.
    throw new Error(brokenOff)
  }
}
