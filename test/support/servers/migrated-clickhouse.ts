/** A client of a migrated ClickHouse, for test files that need nothing else. */
import { afterAll } from 'vitest'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { startClickhouse } from './clickhouse-server.ts'

/** Starts the server, which stops with the test file. */
export async function useClickhouse(): Promise<Clickhouse> {
  const server = await startClickhouse({ isMigrated: true })
  const clickhouse = createClickhouse(server.url, { name: 'test', requestTimeoutMs: 60_000 })
  afterAll(async () => {
    await clickhouse.close()
    await server.stop()
  })
  return clickhouse
}

/** Removes all rows, so that the tests of a file share its server: to migrate costs half a second. */
export async function emptyTables(clickhouse: Clickhouse): Promise<void> {
  const result = await clickhouse.query({
    query: `select name from system.tables where database = currentDatabase()
      and engine like '%MergeTree' and total_rows > 0 and not startsWith(name, 'schema_')`,
    format: 'JSONEachRow',
  })
  for (const { name } of await result.json<{ name: string }>()) {
    await clickhouse.command({ query: `truncate table ${name}` })
  }
}
