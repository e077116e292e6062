/** A made-up migration of a later release: one more column in every table, and one more table. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { migrateClickhouse, migratePostgres } from '#shared/io/migrations/migrate.ts'
import { readMigrations, sqlFolders } from '#shared/io/migrations/migration-files.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { postgresTablesSql } from '../support/servers/databases.ts'

const log = createLog('test', 'silent')

/** Applies it to both stores while processes of this release run. */
export async function migrateFurther(urls: {
  postgres: string
  clickhouse: string
}): Promise<void> {
  await applyLater('postgres', await listPostgresTables(urls.postgres), 'text', (folder) =>
    migratePostgres(urls.postgres, { log, folder }),
  )
  await applyLater('clickhouse', await listClickhouseTables(urls.clickhouse), 'String', (folder) =>
    migrateClickhouse(urls.clickhouse, urls.postgres, { log, folder }),
  )
}

async function applyLater(
  store: keyof typeof sqlFolders,
  tables: readonly string[],
  type: string,
  migrate: (folder: string) => Promise<string[]>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'later-'))
  try {
    cpSync(sqlFolders[store], folder, { recursive: true })
    const engine = store === 'clickhouse' ? 'engine = MergeTree order by later_column' : ''
    const statements = [
      `create table later_table (later_column ${type}) ${engine}`,
      ...tables.map((table) => `alter table ${table} add column later_column ${type} default 'x'`),
    ]
    const { length } = await readMigrations(folder)
    const name = `${String(length + 1).padStart(4, '0')}-later.sql`
    writeFileSync(join(folder, name), statements.map((one) => `${one};\n`).join(''))
    const applied = await migrate(folder)
    if (applied.join() !== name) throw new Error(`applied ${applied.join()} in place of ${name}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function listPostgresTables(url: string): Promise<string[]> {
  const postgres = createPostgres(url, { role: 'test', log })
  try {
    const { rows } = await postgres.query<{ name: string }>(postgresTablesSql)
    return rows.map(({ name }) => name)
  } finally {
    await postgres.close()
  }
}

async function listClickhouseTables(url: string): Promise<string[]> {
  const clickhouse = createClickhouse(url, { name: 'test' })
  try {
    const result = await clickhouse.query({
      query: `select name from system.tables
              where database = currentDatabase() and engine like '%MergeTree'`,
      format: 'JSONEachRow',
    })
    return (await result.json<{ name: string }>()).map(({ name }) => name)
  } finally {
    await clickhouse.close()
  }
}
