// The views of analysts are repeatable: an installation gets each change of a view once, keeps its
// rows and what analysts may read, and is not put back by an older release.
import { hash } from 'node:crypto'
import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { formerNames, toViewParts } from '#shared/core/analytics/view-sql.ts'
import { clickhousePrivileges } from '#shared/core/permissions/table-privileges.ts'
import { serverCatalog, signalCatalog } from '#shared/core/signals/signals.ts'
import { createClickhouse, databaseOf } from '#shared/io/clickhouse/clickhouse.ts'
import { createClickhouseCheck } from '#shared/io/migrations/clickhouse-check.ts'
import { type MigrateOptions, migrateClickhouse } from '#shared/io/migrations/migrate.ts'
import { sqlFolders } from '#shared/io/migrations/migration-files.ts'
import { createSchemaVersions } from '#shared/io/migrations/schema-versions.ts'
import { readViews, readViewVersion } from '#shared/io/migrations/view-files.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { migrateAsBefore } from '../../support/analytics/previous-views.ts'
import { callClickhouse } from '../../support/servers/clickhouse-request.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

const log = createLog('test', 'silent')
const password = 'password of an analyst'
const analyst = 'analyst.acme.own'
const folders: string[] = []
let engine: TestClickhouse
let postgres: TestPostgres

beforeAll(async () => {
  const passwordSha256Hex = hash('sha256', password, 'hex')
  const users = [
    { name: analyst, passwordSha256Hex, grants: [], isAnalyst: true as const },
    { name: 'weak', passwordSha256Hex, grants: ['GRANT SELECT ON *.*', ...weakGrants] },
  ]
  ;[engine, postgres] = await Promise.all([startClickhouse({ users }), startPostgres()])
})
afterAll(async () => {
  await Promise.all([engine?.stop(), postgres?.stop()])
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** All that `migrate` needs but the definer. */
const weakGrants = [
  ...['INSERT', 'CREATE DATABASE', 'CREATE TABLE', 'CREATE VIEW', 'ALTER ADD COLUMN', 'DROP TABLE'],
  'DROP VIEW',
]
  .map((privilege) => `GRANT ${privilege} ON *.*`)
  .concat(['', 'Replacing', 'Aggregating'].map((kind) => `GRANT TABLE ENGINE ON ${kind}MergeTree`))

/** The files of a release whose views are of a version, some of them another text. */
function makeRelease(version: number, changes: Record<string, (text: string) => string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'views-'))
  folders.push(folder)
  cpSync(sqlFolders.clickhouse, folder, { recursive: true })
  writeFileSync(join(folder, 'views/VERSION'), `version ${version}\n`)
  for (const [name, change] of Object.entries(changes)) {
    const path = join(folder, `views/${name}.sql`)
    writeFileSync(path, change(readFileSync(path, 'utf8')))
  }
  return folder
}
const saying = (comment: string) => (text: string) =>
  text.replace(/\ncomment '(?:[^']|'')*';\s*$/, () => `\ncomment '${comment}';\n`)

const migrate = (url: string, options: Partial<MigrateOptions> = {}) =>
  migrateClickhouse(url, null, { log, ...options })

async function read<Row>(url: string, query: string): Promise<Row[]> {
  const client = createClickhouse(url, { name: 'test' })
  try {
    return await (await client.query({ query, format: 'JSONEachRow' })).json<Row>()
  } finally {
    await client.close()
  }
}
const commentOf = async (url: string, view: string) => {
  const [row] = await read<{ comment: string }>(
    url,
    `select comment from system.tables
     where database = '${databaseOf(url)}_analytics' and name = '${view}'`,
  )
  return row?.comment
}

/** One event with a signal that the catalog does not have. */
const insertEvent = `insert into telemetry (tenant_id, device_id, session_id, event_id, received_at,
  platform, signals) values ('acme', 'phone', 's', 'e', now64(3), 'iPhone OS',
  '{"root": {"su_binary": true, "new_check": 3}}')`

describe('an installation of the release before', () => {
  it('upgrades with its rows, to a new signal and a changed view', async () => {
    const url = `${engine.url}/before`
    await migrateAsBefore(url)
    const client = createClickhouse(url, { name: 'test' })
    await client.command({ query: insertEvent })
    await client.close()
    const before = await read(url, 'select * from before_analytics.events')

    const newCheck = {
      type: 'number' as const,
      platforms: ['android' as const],
      grade: 'low' as const,
      flag: 'ROOTED' as const,
      description: "It's new.",
      sources: [],
    }
    const root = { ...signalCatalog.root, new_check: newCheck }
    const applied = await migrate(url, {
      folder: makeRelease(1_000, { events: saying('Changed.') }),
      viewParts: toViewParts({ ...signalCatalog, ...serverCatalog, root }),
    })
    const { views } = await readViews(sqlFolders.clickhouse)
    const files = [
      ...['0013-decisions', '0014-server-signals', '0015-installs', '0016-alert-assignees'],
      '0017-connections',
      '0018-latest-connections',
      '0019-connection-velocity',
      ...['0020-identity-keys', '0021-phone-links', '0022-phone-corrections'],
      '0023-replay-networks',
      '0024-labels',
      '0025-hourly-counts',
      '0026-daily-counts',
      '0027-uncompared-links',
      '0028-label-meanings',
      '0029-doubtful-links',
      '0030-install-key-devices',
    ]
    const changed = [
      ...files.map((name) => `${name}.sql`),
      ...views.map(({ name }) => `views/${name}.sql`),
    ]
    expect(applied.sort()).toEqual(changed.sort())
    const typed = 'signals.root.su_binary as su, signals.root.new_check as fresh, platform'
    expect(await read(url, `select ${typed} from before_analytics.typed_events`)).toEqual([
      { su: true, fresh: 3, platform: 'ios' },
    ])
    expect(await commentOf(url, 'events')).toBe('Changed.')
    // The release adds what was decided: of this event, what the edge made of it; and what the
    // service saw: nothing.
    const unseen = { server_signals: {}, detected_server_signals: [] }
    const unmeasured = {
      connection_network: '',
      connection_country: '',
      connection_asn: 0,
      connection_organization: '',
      connection_kinds: [],
      connection_address_hash: '',
      connection_address: '',
      connection_latitude: null,
      connection_longitude: null,
    }
    const added = { risk_score: 0, action: 'ALLOW', ...unseen, ...unmeasured }
    const decided = before.map((row) => ({ ...(row as object), ...added }))
    expect(await read(url, 'select * from before_analytics.events')).toEqual(decided)
    for (const [formerName, name] of Object.entries(formerNames)) {
      expect(await commentOf(url, formerName)).toBe(`The former name of ${name}.`)
      const [former, present] = await Promise.all(
        [formerName, name].map((view) => read(url, `describe before_analytics.${view}`)),
      )
      expect(former).toEqual(present)
    }
  })
})

describe('views', () => {
  it('are replaced where their text is another one, and made again where they are gone', async () => {
    const url = `${engine.url}/changed`
    await migrate(url)
    expect(await migrate(url)).toEqual([])
    const version = await readViewVersion(sqlFolders.clickhouse)
    const folder = makeRelease(version, { alerts: saying('One.') })
    expect(await migrate(url, { folder })).toEqual(['views/alerts.sql'])
    // Undone before it was released: the version is the same.
    expect(await migrate(url)).toEqual(['views/alerts.sql'])
    const client = createClickhouse(url, { name: 'test' })
    await client.command({ query: 'drop view changed_analytics.alerts' })
    await client.close()
    expect(await migrate(url)).toEqual(['views/alerts.sql'])
    expect(await migrate(url)).toEqual([])
  })

  it('of a newer release stay, also where the older one migrates again and again', async () => {
    const url = `${engine.url}/newer`
    const [older, newer] = [makeRelease(1), makeRelease(2, { alerts: saying('Newer.') })]
    await migrate(url, { folder: older })
    const warn = vi.spyOn(log, 'warn')
    expect(await migrate(url, { folder: newer })).toEqual(['views/alerts.sql'])
    for (let times = 0; times < 2; times++) {
      expect(await migrate(url, { folder: older })).toEqual([])
    }
    expect(warn).toHaveBeenCalledWith(
      { version: 1, newest: 2 },
      'ClickHouse has the views of a newer release',
    )
    warn.mockRestore()
    expect(await commentOf(url, 'alerts')).toBe('Newer.')
    expect(await migrate(url, { folder: newer })).toEqual([])
  })

  it('a version with the texts that the server has is noted all the same', async () => {
    const url = `${engine.url}/noted`
    await migrate(url, { folder: makeRelease(1) })
    expect(await migrate(url, { folder: makeRelease(2) })).toEqual([])
    expect(await read(url, 'select max(version) as newest from schema_views')).toEqual([
      { newest: 2 },
    ])
  })

  it('are applied by one of several racing processes, and the newest release wins', async () => {
    const url = `${engine.url}/raced`
    const postgresUrl = await postgres.createDatabase()
    const releases = [1, 3, 2, 3, 1].map((version) =>
      makeRelease(version, { alerts: saying(`Of ${version}.`) }),
    )
    const applied = await Promise.all(
      releases.map((folder) => migrateClickhouse(url, postgresUrl, { log, folder })),
    )
    expect(await commentOf(url, 'alerts')).toBe('Of 3.')
    const numbered = applied.flat().filter((name) => /^\d/.test(name))
    expect(numbered).toEqual([...new Set(numbered)])
  })

  it('are applied again when one of them failed', async () => {
    const url = `${engine.url}/failed`
    const folder = makeRelease(1)
    const path = join(folder, 'views/users.sql')
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, text.replace('as\nselect', 'as\nselect from nowhere'))
    await expect(migrate(url, { folder })).rejects.toThrow('nowhere')
    writeFileSync(path, text)
    expect(await migrate(url, { folder })).toContain('views/users.sql')
    expect(await migrate(url, { folder })).toEqual([])
  })

  it('have the name of their file', async () => {
    const folder = makeRelease(1)
    appendFileSync(join(folder, 'views/other.sql'), readFileSync(join(folder, 'views/users.sql')))
    await expect(migrate(`${engine.url}/misnamed`, { folder })).rejects.toThrow(
      'views/other.sql: expected it to create the view other',
    )
  })

  it('that are older than a process needs are a reason not to be ready', async () => {
    const url = `${engine.url}/ready`
    await migrate(url)
    const clickhouse = createClickhouse(url, { name: 'test' })
    const check = createClickhouseCheck({
      clickhouse,
      database: 'ready',
      privileges: clickhousePrivileges.api,
      schemas: createSchemaVersions(createMetrics('test', { isThread: true })),
      log,
    })
    expect(await check()).toBeNull()
    await clickhouse.command({ query: 'truncate table schema_views' })
    expect(await check()).toMatch(/^has views of version 0; this release needs \d+: run `npm run/)
    await clickhouse.command({ query: 'drop table schema_views' })
    expect(await check()).toMatch(/^has views of version 0; this release needs \d+: run `npm run/)
    await clickhouse.close()
  })
})

describe('analysts', () => {
  const own = () => `${engine.url}/device_intelligence`
  const asAnalyst = async () => {
    const basic = Buffer.from(`${analyst}:${password}`).toString('base64')
    const { text } = await callClickhouse(new URL('/', engine.url).origin, {
      body: 'select platform from analytics.events',
      headers: { authorization: `Basic ${basic}` },
    })
    return text.trim()
  }
  beforeAll(async () => {
    await migrate(own(), { folder: makeRelease(1) })
    const client = createClickhouse(own(), { name: 'test' })
    await client.command({ query: insertEvent })
    await client.close()
  })

  it('read a view all the while that it is replaced', async () => {
    let isDone = false
    const answers = new Set<string>()
    const reading = (async () => {
      while (!isDone) answers.add(await asAnalyst())
    })()
    for (let version = 2; version < 12; version++) {
      const folder = makeRelease(version, { events: saying(`Of ${version}.`) })
      expect(await migrate(own(), { folder })).toEqual(['views/events.sql'])
    }
    isDone = true
    await reading
    expect([...answers]).toEqual(['ios'])
  })

  it('are named when the user that migrates may not point the view at the reader', async () => {
    const warn = vi.spyOn(log, 'warn')
    const weak = new URL(own())
    weak.username = 'weak'
    weak.password = password
    const folder = makeRelease(20, { events: saying('By a weak user.') })
    expect(await migrate(weak.href, { folder })).toEqual(['views/events.sql'])
    expect(warn).toHaveBeenCalledWith(
      { views: ['events'] },
      expect.stringContaining('SET DEFINER ON analytics_reader'),
    )
    warn.mockRestore()
    expect(await asAnalyst()).toContain('ACCESS_DENIED')
    // The next one that may does.
    await migrate(own(), { folder })
    expect(await asAnalyst()).toBe('ios')
  })
})
