import type { ClickhouseNode } from '#shared/io/clickhouse/clickhouse.ts'

/** The rows of a query with two columns: a name and its number. */
export async function readPairs(
  clickhouse: ClickhouseNode,
  query: string,
): Promise<Record<string, number>> {
  const result = await clickhouse.query({ query, format: 'JSONCompactEachRow' })
  const rows = await result.json<[string, number | string]>()
  return Object.fromEntries(rows.map(([name, value]) => [name, Number(value)]))
}
