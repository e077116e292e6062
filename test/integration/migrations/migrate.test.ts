// Migrations: applied once, in order, by any number of concurrent processes, and never when the
// files and the database do not match.
import { appendFileSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createClient } from '@clickhouse/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { migrateClickhouse, migratePostgres } from '#shared/io/migrations/migrate.ts'
import { MigrationError, readMigrations } from '#shared/io/migrations/migration-files.ts'
import { requireFitPostgres } from '#shared/io/migrations/postgres-database.ts'
import { createPostgres, type Queryable } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

const log = createLog('test', 'silent')
const sqlFolder = fileURLToPath(new URL('../../../postgres', import.meta.url))
const folders: string[] = []
let server: TestPostgres
let clickhouse: TestClickhouse

beforeAll(async () => {
  ;[server, clickhouse] = await Promise.all([startPostgres(), startClickhouse()])
})
afterAll(async () => {
  await Promise.all([server?.stop(), clickhouse?.stop()])
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

function makeFolder(files: Record<string, string> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'migrations-'))
  folders.push(folder)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

/** The URL of a database that does not exist yet. */
function absentDatabase(): string {
  const url = new URL(server.url)
  url.pathname = `/absent-${folders.length}-${Math.random().toString(36).slice(2)}`
  return url.href
}

async function read<R extends object>(url: string, sql: string): Promise<R[]> {
  const postgres = createPostgres(url, { role: 'test', log })
  try {
    return (await postgres.query<R>(sql)).rows
  } finally {
    await postgres.close()
  }
}

describe('Postgres', () => {
  it('creates the missing database, applies every file once and then nothing', async () => {
    const url = absentDatabase()
    const names = (await readMigrations(sqlFolder)).map(({ name }) => name)
    expect(await migratePostgres(url, { log })).toEqual(names)
    expect(await migratePostgres(url, { log })).toEqual([])
    const rows = await read<{ name: string }>(url, 'select name from schema_migrations order by 1')
    expect(rows.map(({ name }) => name)).toEqual(names)
  })

  it('lets eight racing processes apply each file exactly once, database included', async () => {
    const url = absentDatabase()
    const racers = Array.from({ length: 8 }, () => migratePostgres(url, { log }))
    const applied = (await Promise.all(racers)).flat()
    expect(applied.sort()).toEqual((await readMigrations(sqlFolder)).map(({ name }) => name))
  })

  it('rejects a changed file that was applied', async () => {
    const url = await server.createDatabase()
    const folder = makeFolder()
    cpSync(sqlFolder, folder, { recursive: true })
    await migratePostgres(url, { log, folder })
    appendFileSync(join(folder, '0001-tenants.sql'), '-- one more word\n')
    await expect(migratePostgres(url, { log, folder })).rejects.toThrow(
      '0001-tenants.sql was changed after it had been applied to Postgres',
    )
  })

  it('rejects a gap in the numbers before it changes anything', async () => {
    const url = absentDatabase()
    const folder = makeFolder({ '0001-a.sql': 'select 1;', '0003-c.sql': 'select 1;' })
    await expect(migratePostgres(url, { log, folder })).rejects.toThrow(
      'expected the file 0002-<what>.sql here',
    )
    await expect(read(url, 'select 1')).rejects.toMatchObject({ code: '3D000' })
  })

  it('leaves the schema of a newer release as it is, so that a release can be rolled back', async () => {
    const url = await server.createDatabase()
    const setting = 'create table audit_retention as select 400 as days;'
    const newer = makeFolder({ '0001-a.sql': setting, '0002-b.sql': 'create table newer (n int);' })
    await migratePostgres(url, { log, folder: newer })
    const older = makeFolder({ '0001-a.sql': setting })
    expect(await migratePostgres(url, { log, folder: older, auditRetentionDays: 30 })).toEqual([])
    const [row] = await read(url, "select to_regclass('newer') as newer, days from audit_retention")
    expect(row).toEqual({ newer: 'newer', days: 400 })
    expect(await migratePostgres(url, { log, folder: newer })).toEqual([])
  })

  it.each([
    ['in place of one of this release', { '0001-a.sql': 'select 1;', '0002-c.sql': 'select 2;' }],
    [
      'before the last one of this release',
      { '0001-b.sql': 'select 1;', '0002-b.sql': 'select 1;' },
    ],
  ])('rejects an unknown file %s', async (_, files) => {
    const url = await server.createDatabase()
    const applied = makeFolder({ '0001-a.sql': 'select 1;', '0002-b.sql': 'select 1;' })
    await migratePostgres(url, { log, folder: applied })
    await expect(migratePostgres(url, { log, folder: makeFolder(files) })).rejects.toThrow(
      'which this release does not have, and it does not follow those of this release',
    )
  })

  it('leaves nothing of a failed file, and applies it once it is corrected', async () => {
    const url = await server.createDatabase()
    const folder = makeFolder({
      '0001-good.sql': 'create table good (n int);',
      '0002-bad.sql': 'create table half (n int); insert into nowhere values (1);',
    })
    await expect(migratePostgres(url, { log, folder })).rejects.toThrow('nowhere')
    const [row] = await read(url, "select to_regclass('half') as half, to_regclass('good') as good")
    expect(row).toEqual({ half: null, good: 'good' })
    writeFileSync(join(folder, '0002-bad.sql'), 'create table half (n int);')
    expect(await migratePostgres(url, { log, folder })).toEqual(['0002-bad.sql'])
  })

  it('names a server that is too old', async () => {
    const older: Queryable = {
      query: async (sql, values) => {
        const { rows, rowCount } = await present.query(sql, values)
        return { rows: rows.map((row) => ({ ...row, version: '14.9' })) as never, rowCount }
      },
    }
    const present = createPostgres(server.url, { role: 'test', log })
    await expect(requireFitPostgres(older)).rejects.toThrow(
      new MigrationError('Postgres has version 14.9; 15 or newer is needed'),
    )
    await present.close()
  })

  it('fails with the reason when no server answers in time', async () => {
    const signal = AbortSignal.timeout(200)
    await expect(
      migratePostgres('postgres://di@127.0.0.1:1/none', { log, signal }),
    ).rejects.toThrow(new MigrationError('Postgres refuses the connection'))
    await expect(
      migrateClickhouse('http://di@127.0.0.1:1/none', null, { log, signal }),
    ).rejects.toThrow(new MigrationError('ClickHouse refuses the connection'))
  })
})

describe('ClickHouse', () => {
  const statements =
    "create table if not exists a (n Int64, s String default ';') engine = MergeTree order by n;\n" +
    '-- a comment; with a semicolon\n' +
    'create view if not exists b as select count() as n from a;\n'

  it('lets racing processes apply each file once, under a lock held in Postgres', async () => {
    const postgresUrl = await server.createDatabase()
    const url = `${clickhouse.url}/raced`
    const folder = makeFolder({
      '0001-a.sql': statements,
      '0002-b.sql': 'insert into a (n) values (1);',
    })
    const racers = Array.from({ length: 5 }, () =>
      migrateClickhouse(url, postgresUrl, { log, folder }),
    )
    expect((await Promise.all(racers)).flat().sort()).toEqual(['0001-a.sql', '0002-b.sql'])
    const client = createClient({ url })
    const rows = await (
      await client.query({ query: 'select n, s from a', format: 'JSONEachRow' })
    ).json()
    await client.close()
    expect(rows).toEqual([{ n: 1, s: ';' }])
  })

  it('runs a half-applied file again, and rejects a changed one', async () => {
    const url = `${clickhouse.url}/halved`
    const folder = makeFolder({ '0001-a.sql': `${statements}select from nothing at all;` })
    await expect(migrateClickhouse(url, null, { log, folder })).rejects.toThrow()
    writeFileSync(join(folder, '0001-a.sql'), statements)
    expect(await migrateClickhouse(url, null, { log, folder })).toEqual(['0001-a.sql'])
    expect(await migrateClickhouse(url, null, { log, folder })).toEqual([])
    writeFileSync(join(folder, '0001-a.sql'), `${statements}select 1;`)
    await expect(migrateClickhouse(url, null, { log, folder })).rejects.toThrow(
      'changed after it had been applied to ClickHouse',
    )
  })
  it('leaves the schema of a newer release as it is', async () => {
    const url = `${clickhouse.url}/newer`
    const files = { '0001-a.sql': statements }
    const folder = makeFolder({ ...files, '0002-b.sql': 'insert into a (n) values (1);' })
    await migrateClickhouse(url, null, { log, folder })
    expect(await migrateClickhouse(url, null, { log, folder: makeFolder(files) })).toEqual([])
    expect(await migrateClickhouse(url, null, { log, folder })).toEqual([])
  })
})
