/**
 * The schemas that the migrations create: every table has a row in a README that explains its
 * bound, and processes of the recorded release find everything that they use.
 */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { exceptAccepted } from '../../releases/accepted.ts'
import { compareTables } from '../../releases/compare.ts'
import { readClickhouseTables, readPostgresTables } from '../../releases/present.ts'
import recordedClickhouse from '../../releases/recorded/clickhouse.json' with { type: 'json' }
import recordedPostgres from '../../releases/recorded/postgres.json' with { type: 'json' }
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import { postgresTablesSql } from '../../support/servers/databases.ts'
import {
  type MigratedPostgres,
  startMigratedPostgres,
} from '../../support/servers/migrated-postgres.ts'

let postgres: MigratedPostgres
let server: TestClickhouse
let clickhouse: Clickhouse

beforeAll(async () => {
  ;[postgres, server] = await Promise.all([
    startMigratedPostgres(),
    startClickhouse({ isMigrated: true }),
  ])
  clickhouse = createClickhouse(server.url, { name: 'test' })
})

afterAll(async () => {
  await clickhouse?.close()
  await Promise.all([postgres?.close(), server?.stop()])
})

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
  const { rows } = await postgres.postgres.query<{ name: string }>(postgresTablesSql)
  expect(readBounds('postgres')).toEqual(rows.map(({ name }) => name).sort())
})

test('the page of ClickHouse explains the bound of each table', async () => {
  const result = await clickhouse.query({
    query: `select name from system.tables
            where database = currentDatabase() and engine like '%MergeTree'`,
    format: 'JSONEachRow',
  })
  const tables = (await result.json<{ name: string }>()).map(({ name }) => name)
  expect(tables).toContain('telemetry')
  expect(readBounds('clickhouse')).toEqual(tables.sort())
})

test('the recorded release finds in PostgreSQL what it uses', async () => {
  const differences = compareTables(recordedPostgres, await readPostgresTables(postgres.postgres))
  expect(exceptAccepted(differences)).toEqual([])
})

test('the recorded release finds in ClickHouse what it uses', async () => {
  const differences = compareTables(recordedClickhouse, await readClickhouseTables(clickhouse))
  expect(exceptAccepted(differences)).toEqual([])
})
