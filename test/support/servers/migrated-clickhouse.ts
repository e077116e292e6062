/** A client of a migrated ClickHouse, for test files that need nothing else. */
import { afterAll } from 'vitest'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { startClickhouse } from './clickhouse-server.ts'

/** Starts the server, which stops with the test file. */
export async function useClickhouse(): Promise<Clickhouse> {
  const server = await startClickhouse({ isMigrated: true })
  const clickhouse = createClickhouse(server.url, { name: 'test' })
  afterAll(async () => {
    await clickhouse.close()
    await server.stop()
  })
  return clickhouse
}
