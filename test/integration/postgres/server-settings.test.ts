// A PostgreSQL whose server, database or role has other defaults than ours: either a session of ours
// is as on any other server, or migrate and readiness say which setting is in the way and what to do.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listAlerts } from '#shared/io/alerts/list-alerts.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { setDisposition } from '#shared/io/alerts/set-disposition.ts'
import { migratePostgres } from '#shared/io/migrations/migrate.ts'
import { MigrationError } from '#shared/io/migrations/migration-files.ts'
import { createPostgresCheck } from '#shared/io/migrations/postgres-check.ts'
import { createSchemaVersions } from '#shared/io/migrations/schema-versions.ts'
import {
  createPostgres,
  isSqlState,
  type Postgres,
  PostgresUnavailableError,
  sqlStates,
} from '#shared/io/postgres/postgres.ts'
import { pinnedSettings } from '#shared/io/postgres/session-settings.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { makeAlertCandidate } from '../../support/alerts/alert-candidates.ts'
import { hostilePostgres, toDatabaseSettings } from '../../support/servers/hostile-settings.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'

const log = createLog('test', 'silent')
let server: TestPostgres
let admin: Postgres
const pools: Postgres[] = []

beforeAll(async () => {
  server = await startPostgres()
  admin = connect(server.url)
})
afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.close()))
  await server?.stop()
})

function connect(url: string): Postgres {
  const pool = createPostgres(url, { role: 'test', log })
  pools.push(pool)
  return pool
}

const nameOf = (url: string): string => new URL(url).pathname.slice(1)

/** A database with defaults that new connections to it begin with. */
async function createHostile(settings: Readonly<Record<string, string>>): Promise<string> {
  const url = await server.createDatabase()
  for (const sql of toDatabaseSettings(nameOf(url), settings)) await admin.query(sql)
  return url
}

async function checkOf(url: string) {
  return createPostgresCheck(connect(url), {
    schemas: createSchemaVersions(createMetrics('x', { isThread: true })),
    log,
  })
}

describe('a session of ours', () => {
  it('has our value of each setting, whatever the database begins with', async () => {
    const url = await createHostile(hostilePostgres)
    const names = Object.keys(hostilePostgres)
    const read = `select name, setting as value from pg_settings where name = any($1) order by 1`
    const { rows } = await connect(url).query<{ name: string; value: string }>(read, [names])
    const wanted = names.sort().map((name) => ({ name, value: pinnedSettings[name] }))
    expect(rows).toEqual(wanted)
  })

  it('has every pinned setting tried', async () => {
    const { rows } = await admin.query<{ name: string }>('select name from pg_settings')
    const known = new Set(rows.map(({ name }) => name))
    const pinned = Object.keys(pinnedSettings).filter((name) => known.has(name))
    expect(
      Object.keys(hostilePostgres)
        .filter((name) => known.has(name))
        .sort(),
    ).toEqual(pinned.sort())
  })

  it('migrates, raises alerts and lists them in such a database', async () => {
    const url = await createHostile(hostilePostgres)
    await migratePostgres(url, { log })
    const postgres = connect(url)
    await insertBareTenants(postgres, ['acme'])
    await raiseAlerts(
      postgres,
      [makeAlertCandidate({ tenantId: 'acme', sessionId: 's' })],
      Date.now,
    )
    const listed = await listAlerts(postgres, { tenantId: 'acme', limit: 9, after: null })
    expect(Date.parse(listed.alerts[0]!.created_at)).toBeGreaterThan(Date.now() - 60_000)
  })

  it('uses the schema public beside one that is named like the user', async () => {
    const url = await server.createDatabase()
    const postgres = connect(url)
    await postgres.query(`create schema ${new URL(url).username}`)
    await migratePostgres(url, { log })
    const { rows } = await postgres.query<{ at: string }>(
      `select distinct schemaname as at from pg_tables
       where tablename in ('tenants', 'alerts', 'deliveries', 'schema_migrations')`,
    )
    expect(rows).toEqual([{ at: 'public' }])
    expect(await (await checkOf(url)).writes()).toBeNull()
  })
})

describe.each(['repeatable read', 'serializable'])('where transactions are %s', (isolation) => {
  it('dispositions of one tenant at once are all set', async () => {
    const url = await createHostile({ default_transaction_isolation: isolation })
    await migratePostgres(url, { log })
    const postgres = connect(url)
    await insertBareTenants(postgres, ['acme'])
    const candidates = Array.from({ length: 30 }, (_, n) =>
      makeAlertCandidate({ tenantId: 'acme', sessionId: `s${n}` }),
    )
    await raiseAlerts(postgres, candidates, Date.now)
    const set = await Promise.all(
      candidates.map(({ alertId }) =>
        setDisposition(postgres, { alertId, disposition: 'CONFIRMED', note: null, actor: 'ada' }),
      ),
    )
    expect(set.filter((alert) => alert?.disposition !== 'CONFIRMED')).toEqual([])
  })
})

describe('a statement that lost to another transaction', () => {
  const lose = (state: string) =>
    `do $$ begin raise exception 'lost' using errcode = '${state}'; end $$`

  it.each([
    ['a serialization failure', sqlStates.serializationFailure],
    ['a deadlock', sqlStates.deadlockDetected],
    ['a wait for a lock', sqlStates.lockNotAvailable],
  ])('is a 503 after %s, with its state for who wants it', async (_, state) => {
    for (const work of [
      () => admin.query(lose(state)),
      () => admin.transaction((tx) => tx.query(lose(state))),
      () => admin.withSession((session) => session.transaction((tx) => tx.query(lose(state)))),
    ]) {
      const error = await work().then(
        () => null,
        (failure: unknown) => failure,
      )
      expect(error).toBeInstanceOf(PostgresUnavailableError)
      expect(isSqlState(error, state)).toBe(true)
    }
  })

  it('runs again after a serialization failure', async () => {
    const url = await server.createDatabase()
    const postgres = connect(url)
    await postgres.query('create sequence tries')
    // A sequence counts on when a statement is rolled back.
    await postgres.query(
      `do $$ begin if nextval('tries') < 3 then
         raise exception 'lost' using errcode = 'serialization_failure'; end if; end $$`,
    )
    const { rows } = await postgres.query<{ n: number }>('select last_value as n from tries')
    expect(rows[0]!.n).toBe(3)
  })
})

describe('what a session cannot set', () => {
  const latin1 = async (): Promise<string> => {
    const name = `latin1_${Math.random().toString(36).slice(2)}`
    await admin.query(
      `create database ${name} encoding 'LATIN1' locale_provider libc locale 'C' template template0`,
    )
    const url = new URL(server.url)
    url.pathname = `/${name}`
    return url.href
  }
  const withoutSchema = async (): Promise<string> => {
    const url = await server.createDatabase()
    await connect(url).query('drop schema public')
    return url
  }
  const wants = (name: string, value: string) => (url: string) =>
    `alter role "di" in database "${nameOf(url)}" set ${name} = ${value}`

  it.each([
    ['another encoding', latin1, () => "create database ... encoding 'UTF8' template template0"],
    ['no schema public', withoutSchema, () => 'create schema public'],
    [
      'triggers that do not run',
      () => createHostile({ session_replication_role: 'replica' }),
      wants('session_replication_role', 'origin'),
    ],
    [
      'commits that are not on disk',
      () => createHostile({ synchronous_commit: 'off' }),
      wants('synchronous_commit', 'on'),
    ],
    [
      'transactions that only read',
      () => createHostile({ default_transaction_read_only: 'on' }),
      wants('default_transaction_read_only', 'off'),
    ],
  ])('is refused by migrate and by readiness: %s', async (_, create, toMend) => {
    const url = await create()
    const refused = await migratePostgres(url, { log }).then(
      () => null,
      (error: unknown) => error,
    )
    expect(refused).toBeInstanceOf(MigrationError)
    expect((refused as Error).message).toContain(toMend(url))
    expect(await (await checkOf(url)).writes()).toContain(toMend(url))
  })

  it('is mended by the statement that readiness shows', async () => {
    const url = await createHostile({ default_transaction_read_only: 'on' })
    const { writes } = await checkOf(url)
    const statement = /`(.+)`/.exec((await writes()) ?? '')![1]!
    await admin.query(statement)
    await migratePostgres(url, { log })
    expect(await (await checkOf(url)).writes()).toBeNull()
  })

  it('is right in a database that migrate creates, also where others are not in UTF8', async () => {
    await admin.query('alter database template1 is_template false')
    await admin.query('drop database template1')
    await admin.query(
      `create database template1 encoding 'LATIN1' locale_provider libc locale 'C'
       template template0`,
    )
    const url = new URL(server.url)
    url.pathname = '/fresh'
    await migratePostgres(url.href, { log })
    const { rows } = await connect(url.href).query('show server_encoding')
    expect(rows).toEqual([{ server_encoding: 'UTF8' }])
  })
})
