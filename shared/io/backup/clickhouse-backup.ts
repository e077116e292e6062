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

/** Tables of events by stream offset. Aggregates of devices and sessions do not change by a repeat. */
const eventTables = ['telemetry', 'activity', 'shadow_decisions', 'reconciliation_entries'] as const

/**
 * Replaces both databases. Events that were not decided when the backup began come again from the
 * stream, with other offsets: here they are removed, or their decisions would count as repeats.
 * @param undecidedFrom the stream offset of the first of them
 */
export async function restoreClickhouse(
  clickhouse: Clickhouse,
  { database, place, undecidedFrom }: { database: string; place: string; undecidedFrom: number },
): Promise<void> {
  for (const name of [toAnalyticsDatabase(database), database]) {
    await clickhouse.command({ query: `drop database if exists ${quoteName(name)} sync` })
  }
  await clickhouse.command({ query: `restore ${toDatabases(database)} from ${place}` })
  for (const table of eventTables) {
    await clickhouse.command({
      query: `alter table ${quoteName(database)}.${table}
        delete where stream_offset >= {offset:UInt64}`,
      query_params: { offset: undecidedFrom },
      clickhouse_settings: { mutations_sync: '2' },
    })
  }
}
