/** Every table of both databases has a row in its README that explains its bound. */
import { readFileSync } from 'node:fs'
import pg from 'pg'
import { expect, test } from 'vitest'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { migrateClickhouse, migratePostgres } from '../../support/servers/databases.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'

/** Names in the first column of the table below a heading, if the second column is not empty. */
function readBounds(folder: string): string[] {
  const page = readFileSync(new URL(`../../../${folder}/README.md`, import.meta.url), 'utf8')
  const [, section = ''] = page.split('## How each table stays bounded')
  const [rows = ''] = section.split('\n## ')
  return [...rows.matchAll(/^\|((?:\s*`\w+`,?)+)\s*\|\s*[\w`][^|]*\|$/gm)]
    .flatMap(([, names = '']) => [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name!))
    .sort()
}

test('the page of PostgreSQL explains the bound of each table', async () => {
  const server = await startPostgres()
  try {
    const url = await server.createDatabase()
    await migratePostgres(url)
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    const { rows } = await client.query<{ name: string }>(
      `select tablename as name from pg_tables where schemaname = 'public' order by 1`,
    )
    await client.end()
    expect(readBounds('postgres')).toEqual(rows.map(({ name }) => name).sort())
  } finally {
    await server.stop()
  }
})

test('the page of ClickHouse explains the bound of each table', async () => {
  const server = await startClickhouse()
  try {
    await migrateClickhouse(server.url)
    const client = createClickhouse(server.url, { name: 'test' })
    const result = await client.query({
      query: `select name from system.tables
              where database = currentDatabase() and engine like '%MergeTree'`,
      format: 'JSONEachRow',
    })
    const tables = (await result.json<{ name: string }>()).map(({ name }) => name)
    await client.close()
    expect(tables).toContain('telemetry')
    expect(readBounds('clickhouse')).toEqual(tables.sort())
  } finally {
    await server.stop()
  }
})
