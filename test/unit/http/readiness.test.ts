/** What `/readyz` answers about the checks of a process. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { clickhousePrivileges } from '#shared/core/permissions/table-privileges.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createInternalServer } from '#shared/io/http/internal-server.ts'
import { createClickhouseCheck } from '#shared/io/migrations/clickhouse-check.ts'
import { createPostgresCheck } from '#shared/io/migrations/postgres-check.ts'
import { createSchemaVersions } from '#shared/io/migrations/schema-versions.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'

it('a check that the caller excludes is a warning; a stop cannot be excluded', async () => {
  let stopping = false
  const server = createInternalServer({
    log: createLog('test', 'silent'),
    metrics: createMetrics('test', { isThread: true }),
    readyChecks: { postgres: () => null, clickhouse: () => 'refuses connections' },
    warnings: { jobs: () => 'are late' },
    stopping: () => stopping,
  })
  const read = async (query: string) => {
    const answer = await server.inject(`/readyz${query}`)
    return answer.json<object>()
  }
  const notReady = {
    status: 'not_ready',
    missing: { clickhouse: 'refuses connections' },
    warnings: { jobs: 'are late' },
  }
  expect(await read('')).toEqual(notReady)
  expect(await read('?exclude=postgres&exclude=__proto__')).toEqual(notReady)
  const warnings = { jobs: 'are late', clickhouse: 'refuses connections' }
  expect(await read('?exclude=nats&exclude=clickhouse')).toEqual({ status: 'ready', warnings })
  const page = (await server.inject('/metrics')).body
  expect(page.split('\n').filter((line) => line.startsWith('di_check_failing'))).toEqual([
    'di_check_failing{check="postgres",service="test"} 0',
    'di_check_failing{check="clickhouse",service="test"} 1',
    'di_check_failing{check="jobs",service="test"} 1',
  ])
  stopping = true
  expect(await read('?exclude=clickhouse&exclude=process')).toEqual({
    status: 'not_ready',
    missing: { process: 'is stopping' },
    warnings,
  })
  await server.close()
})

/** What a Postgres says of itself that lacks nothing. */
const fitPostgres = {
  version: '18.1',
  is_standby: false,
  read_only: 'off',
  name: '9999-later.sql',
  encoding: 'UTF8',
  replication_role: 'origin',
  synchronous_commit: 'on',
  may_use_schema: true,
  database: 'device_intelligence',
  role: 'api',
}

it('a probe of a process that only warns of a read-only Postgres reads it once', async () => {
  const queries: string[] = []
  const answers = { ...fitPostgres, is_standby: true }
  const postgres = {
    checkReady: async () => null,
    query: async (sql: string) => {
      queries.push(sql)
      return { rows: [answers] }
    },
  } as unknown as Postgres
  const log = createLog('test', 'silent')
  const metrics = createMetrics('test', { isThread: true })
  const check = createPostgresCheck(postgres, { schemas: createSchemaVersions(metrics), log })
  const server = createInternalServer({
    log,
    metrics,
    readyChecks: { postgres: check.reads },
    warnings: { postgres: check.writes },
    stopping: () => false,
  })
  for (let probe = 1; probe <= 2; probe++) {
    const answer = await server.inject('/readyz')
    const warnings = { postgres: 'is read-only, as a standby is' }
    expect(answer.json()).toEqual({ status: 'ready', warnings })
    expect(queries.filter((sql) => sql.includes('server_version'))).toHaveLength(probe)
    expect(queries).toHaveLength(2 * probe)
    // Probes in the same turn of the event loop share what is read.
    await nextTurn()
  }
  await server.close()
})

it('names a Postgres and a ClickHouse that are too old', async () => {
  const log = createLog('test', 'silent')
  const schemas = createSchemaVersions(createMetrics('test', { isThread: true }))
  const postgres = {
    checkReady: async () => null,
    query: async () => ({ rows: [{ ...fitPostgres, version: '14.9' }] }),
  } as unknown as Postgres
  const check = createPostgresCheck(postgres, { schemas, log })
  const old = 'has version 14.9; 15 or newer is needed'
  expect([await check.reads(), await check.writes()]).toEqual([old, old])
  const clickhouse = {
    shards: [],
    query: async () => ({ text: async () => '1' }),
    exec: async ({ query }: { query: string }) => {
      if (query === 'select version()') return { stream: ['25.2.9.1'] }
      return { stream: [query.startsWith('select max(name)') ? fitPostgres.name : '1'] }
    },
  } as unknown as Clickhouse
  const checkEngine = createClickhouseCheck({
    clickhouse,
    database: 'device_intelligence',
    privileges: clickhousePrivileges.api,
    schemas,
    log,
  })
  expect(await checkEngine()).toBe('has version 25.2.9.1; 25.3 or newer is needed')
})
