/** A ClickHouse as the release before `clickhouse/views` left it: its views are of numbered files. */
import { splitStatements } from '#shared/core/base/sql-statements.ts'
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import { createClickhouse, databaseOf } from '#shared/io/clickhouse/clickhouse.ts'
import { readMigrations, sqlFolders } from '#shared/io/migrations/migration-files.ts'

/** The files of that release. */
const lastNumber = 12

/** Applies its files to an empty server. @param url with the database in its path */
export async function migrateAsBefore(url: string): Promise<void> {
  const database = databaseOf(url)
  const root = createClickhouse(url, { name: 'test', database: 'default' })
  await root.command({ query: `create database ${database}` })
  await root.close()
  const client = createClickhouse(url, { name: 'test' })
  await client.command({
    query: `create table schema_migrations (
      name String, checksum String, applied_at DateTime64(3) default now64(3)
    ) engine = MergeTree order by name`,
  })
  const files = (await readMigrations(sqlFolders.clickhouse)).slice(0, lastNumber)
  for (const { name, text, checksum } of files) {
    for (const statement of splitStatements(text)) {
      const query = statement
        .replaceAll('{analytics:Identifier}', toAnalyticsDatabase(database))
        .replaceAll('{all:Identifier}', database)
      await client.command({ query })
    }
    await client.insert({
      table: 'schema_migrations',
      values: [{ name, checksum }],
      format: 'JSONEachRow',
    })
  }
  await client.close()
}
