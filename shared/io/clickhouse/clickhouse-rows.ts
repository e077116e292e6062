/** Reads a large result in pieces, so that parsing delays other requests by one piece at most. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ClickHouseSettings } from '@clickhouse/client'
import type { ClickhouseNode } from './clickhouse.ts'

type RowsQuery = {
  /** A `select` without a format. */
  query: string
  query_params: Record<string, string | number>
  clickhouse_settings: ClickHouseSettings
  abort_signal: AbortSignal
}

const lineFeed = 0x0a

/**
 * Yields rows as arrays of values, as many at once as one read of the connection has: 64 KiB at
 * most.
 * @throws when ClickHouse fails, also in the middle of its response, or takes too long
 */
export async function* readRowsInPieces<Row>(
  clickhouse: ClickhouseNode,
  { query, ...rest }: RowsQuery,
): AsyncGenerator<Row[]> {
  const { stream } = await clickhouse.exec({
    query: `${query}\nformat JSONCompactEachRow`,
    ...rest,
  })
  let partial: Buffer[] = []
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    // A line feed inside a value is escaped.
    const end = chunk.lastIndexOf(lineFeed)
    if (end === -1) {
      partial.push(chunk)
      continue
    }
    const lines = Buffer.concat([...partial, chunk.subarray(0, end)])
    partial = end + 1 < chunk.length ? [chunk.subarray(end + 1)] : []
    yield parseLines<Row>(lines)
    // One turn of the event loop may read many pieces.
    await nextTurn()
  }
  if (partial.length > 0) throw new Error(brokenOff)
}

const brokenOff = 'ClickHouse broke off its response'

/** Parses all lines at once. */
function parseLines<Row>(lines: Buffer): Row[] {
  try {
    return JSON.parse(`[${lines.toString('utf8').replaceAll('\n', ',')}]`) as Row[]
  } catch {
    // The parser's message would quote the data.
    throw new Error(brokenOff)
  }
}
