/** Backs both databases of a ClickHouse up with its own BACKUP, and restores them. */

import { quoteText } from '#shared/core/scoring/sql/scoring-sql-text.ts'
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import { type Clickhouse, quoteName } from '#shared/io/clickhouse/clickhouse.ts'
import type { UndecidedFrom } from './backup-folder.ts'

/** How long the server may take for all data. */
export const backupMaxMs = 6 * 3_600_000

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

/** @returns whether there is an event; false also without the database */
export async function hasEvents(clickhouse: Clickhouse, database: string): Promise<boolean> {
  const found = await clickhouse.query({
    query: `select count() from system.tables
      where database = {database:String} and name = 'telemetry' and total_rows > 0`,
    query_params: { database },
    format: 'JSONCompactEachRow',
  })
  const [row] = await found.json<[tables: number]>()
  return row![0] > 0
}

/** Tables of events by stream offset. Aggregates of devices and sessions do not change by a repeat. */
const eventTables = [
  'telemetry',
  'decisions',
  'activity',
  'shadow_decisions',
  'installs',
  'install_keys',
  'identity_keys',
  'identity_samples',
  'phone_links',
  'phone_installs',
  'replays',
  'reconciliation_entries',
] as const

/**
 * Replaces both databases. Events that were not decided when the backup began come again from the
 * stream, with other offsets: here they are removed, or their decisions would count as repeats.
 * @param manifest names the first of them in each stream
 */
export async function restoreClickhouse(
  clickhouse: Clickhouse,
  { database, place, manifest }: { database: string; place: string; manifest: UndecidedFrom },
): Promise<void> {
  for (const name of [toAnalyticsDatabase(database), database]) {
    await clickhouse.command({ query: `drop database if exists ${quoteName(name)} sync` })
  }
  await clickhouse.command({ query: `restore ${toDatabases(database)} from ${place}` })
  // Hours may have been counted later than their events were copied: they are counted again.
  for (const table of ['hourly_marks', 'hourly_counts', 'daily_marks', 'daily_counts']) {
    await clickhouse.command({ query: `truncate table ${quoteName(database)}.${table}` })
  }
  for (const table of eventTables) {
    await clickhouse.command({
      query: `alter table ${quoteName(database)}.${table} delete where ${toUndecided(manifest)}`,
      clickhouse_settings: { mutations_sync: '2', max_query_size: String(queryBytesMax) },
    })
  }
}

/** A condition with the ids of 50,000 tenants is 4 MB. */
const queryBytesMax = 16 * 1024 * 1024

/** SQL: tenants that lie on no further stream lie on the first. */
export function toUndecided({
  undecided_from: first,
  further_streams: further,
}: UndecidedFrom): string {
  const isOf = (tenants: readonly string[]) =>
    `has([${tenants.map(quoteText).join(', ')}]::Array(String), tenant_id)`
  const isFurther = isOf(further.flatMap(({ tenants }) => tenants))
  return [
    `stream_offset >= ${first} and not ${isFurther}`,
    ...further.map((one) => `stream_offset >= ${one.undecided_from} and ${isOf(one.tenants)}`),
  ].join(' or ')
}
