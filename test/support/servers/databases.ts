// Migrates test servers to the schema of this release, by the same code as production.

import type { ShardUrls } from '#shared/io/clickhouse/clickhouse.ts'
import * as migrate from '#shared/io/migrations/migrate.ts'
import { createLog } from '#shared/io/process/log.ts'

const log = createLog('test', 'silent')

/** SQL: the names of our tables in Postgres, sorted, without partitions. */
export const postgresTablesSql = `
select relname as name from pg_class
where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
order by 1`

/** Creates the database of this URL when it is missing and applies every migration. */
export async function migratePostgres(
  url: string,
  options: Pick<migrate.MigrateOptions, 'rolePasswords' | 'auditRetentionDays'> = {},
): Promise<void> {
  await migrate.migratePostgres(url, { log, signal: AbortSignal.timeout(120_000), ...options })
}

/**
 * The same for ClickHouse.
 * @param postgresUrl the server of the lock; optional when one test migrates alone
 */
export async function migrateClickhouse(
  clickhouseUrl: string,
  postgresUrl: string | null = null,
  shardUrls: ShardUrls = [],
): Promise<void> {
  const options = { log, signal: AbortSignal.timeout(120_000), shardUrls }
  await migrate.migrateClickhouse(clickhouseUrl, postgresUrl, options)
}
