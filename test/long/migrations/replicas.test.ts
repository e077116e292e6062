// What the migration runs on the replicas of a shard. No engine here can copy rows, so HTTP servers
// stand in for ClickHouse and note the statements; test/long/clickhouse/shards.test.ts has
// the engine parse them.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { migrateClickhouse } from '#shared/io/migrations/migrate.ts'
import { MigrationError } from '#shared/io/migrations/migration-files.ts'
import { createLog } from '#shared/io/process/log.ts'

const files = {
  '0001-events.sql': [
    'create table if not exists events (id String)\nengine = MergeTree\norder by id;',
    'create materialized view if not exists copies to events as\nselect 1 as id;',
    "insert into events\nselect 'first';",
  ],
  '0002-more.sql': [
    'alter table events add column if not exists n Int8;',
    'alter table copies modify query\nselect 1 as id, 2 as n;',
  ],
}
const log = createLog('test', 'silent')
let folder: string
const stops: (() => void)[] = []
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'migrations-'))
  for (const [name, texts] of Object.entries(files)) {
    writeFileSync(join(folder, name), texts.join('\n'))
  }
})
afterAll(() => {
  for (const stop of stops) stop()
  rmSync(folder, { recursive: true, force: true })
})

/** A server that knows which files were applied to it, and notes other statements. */
async function startDouble(version = '26.7.1.1') {
  const applied: string[] = []
  const ran: { text: string; settings: URLSearchParams }[] = []
  const server = createServer(async (request, response) => {
    const settings = new URL(request.url!, 'http://double').searchParams
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const text = settings.get('query') ?? body
    if (/^insert into schema_migrations/i.test(text)) applied.push(body.trim())
    else if (!/^\s*(select|check grant)/i.test(text)) ran.push({ text, settings })
    response.end(answer(text))
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  stops.push(() => server.close())
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const created = `CREATE TABLE di.events (\`id\` String, \`n\` Int8)
    ENGINE = ReplicatedMergeTree('/clickhouse/tables/di/1/events', '${host}') ORDER BY id`
  const answers: [RegExp, () => unknown[]][] = [
    [/ from system.clusters/, () => [[1, [1], 1]]],
    [/groupArray\(comment\)/, () => [[applied.length > 0 ? ['shards: 1'] : [], applied.length]]],
    [/countIf\(engine like/, () => [[applied.length, applied.length]]],
    [/sum\(total_rows\)/, () => [[applied.length]]],
    [/select create_table_query/, () => [[created]]],
    // Every name is a table with rows, also that of the view.
    [/select count\(\) from system.tables/, () => [[1]]],
    [/select name from system.tables/, () => [['events']]],
  ]
  const answer = (text: string): string => {
    if (text.startsWith('select version()')) return version
    if (text.startsWith('check GRANT')) return '1'
    if (text.startsWith('select name, checksum')) return applied.map((row) => `${row}\n`).join('')
    const rows = answers.find(([pattern]) => pattern.test(text))?.[1]() ?? []
    return rows.map((row) => `${JSON.stringify(row)}\n`).join('')
  }
  /** Takes the statements about tables, the databases' own aside. */
  const take = () => ran.splice(0).filter(({ text }) => !/^create database|schema_migr/.test(text))
  return { url: `http://${host}/di`, host, take }
}
type Double = Awaited<ReturnType<typeof startDouble>>

const migrate = (first: Double, second: Double) =>
  migrateClickhouse(first.url, null, { log, folder, shardUrls: [[first.url, second.url]] })
const textsOf = (ran: ReturnType<Double['take']>) => ran.map(({ text }) => text.split('\n')[0])

const ofLeader = [
  'create table if not exists events (id String)',
  'create or replace table `di_all`.`events` as `di`.`events`',
  'create materialized view if not exists copies to events as',
  'insert into events',
  'alter table events add column if not exists n Int8',
  'create or replace table `di_all`.`events` as `di`.`events`',
  'alter table copies modify query',
  'create or replace table `di_all`.`copies` as `di`.`copies`',
  'system sync replica `di`.`events` lightweight',
]
const ofOther = [
  'CREATE TABLE IF NOT EXISTS di.events (`id` String, `n` Int8)',
  ...ofLeader.slice(1).filter((text) => !/^insert|^alter table events/.test(text)),
]

it('writes and alters on one replica of a shard, and creates on every one', async () => {
  const [first, second] = await Promise.all([startDouble(), startDouble()])
  expect(await migrate(first, second)).toEqual(Object.keys(files))
  const [onFirst, onSecond] = [first.take(), second.take()]
  expect(textsOf(onFirst)).toEqual(ofLeader)
  expect(onFirst[0]!.text).toContain(
    `engine = ReplicatedMergeTree('/clickhouse/tables/di/1/events', '${first.host}')`,
  )
  // An alteration is done when every replica has it.
  const altered = onFirst.find(({ text }) => text.startsWith('alter table events'))
  expect(altered!.settings.get('alter_sync')).toBe('2')
  expect(textsOf(onSecond)).toEqual(ofOther)
  expect(onSecond[0]!.text).toContain(`('/clickhouse/tables/di/1/events', '${second.host}')`)

  expect(await migrate(first, second)).toEqual([])
  expect(textsOf(first.take())).toEqual([ofLeader.at(-1)])
})

it('changes nothing on a server that is too old', async () => {
  const [old, other] = await Promise.all([startDouble('25.2.9.1'), startDouble()])
  const migration = migrate(old, other)
  await expect(migration).rejects.toThrow(MigrationError)
  await expect(migration).rejects.toThrow(
    'ClickHouse has version 25.2.9.1; 25.3 or newer is needed',
  )
  expect([...old.take(), ...other.take()]).toEqual([])
})

it('makes a new replica from the one that stayed, also when it is named first', async () => {
  const [stayed, lost, replaced] = await Promise.all([startDouble(), startDouble(), startDouble()])
  await migrate(stayed, lost)
  stayed.take()
  expect(await migrate(replaced, stayed)).toEqual(Object.keys(files))
  expect(textsOf(stayed.take())).toEqual([ofLeader.at(-1)])
  expect(textsOf(replaced.take())).toEqual(ofOther)
})
