/** Backs both databases of a ClickHouse up with its own BACKUP, and restores them. */
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import { type Clickhouse, quoteName } from '#shared/io/clickhouse/clickhouse.ts'

const toDatabases = (database: string): string =>
  [database, toAnalyticsDatabase(database)].map((name) => `database ${quoteName(name)}`).join(', ')

/**
 * @param clickhouse as a user with the right BACKUP, and with time for all data
 * @param place where it goes, such as `File('name')` or `Disk('backups', 'name')`
 */
export async function backupClickhouse(
  clickhouse: Clickhouse,
  database: string,
  place: string,
): Promise<void> {
  await clickhouse.command({ query: `backup ${toDatabases(database)} to ${place}` })
}

/** Replaces both databases. */
export async function restoreClickhouse(
  clickhouse: Clickhouse,
  database: string,
  place: string,
): Promise<void> {
  for (const name of [toAnalyticsDatabase(database), database]) {
    await clickhouse.command({ query: `drop database if exists ${quoteName(name)} sync` })
  }
  await clickhouse.command({ query: `restore ${toDatabases(database)} from ${place}` })
}
