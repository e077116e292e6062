/** What `/readyz` answers about the checks of a process. */
import { expect, it } from 'vitest'
import { createInternalServer } from '#shared/io/http/internal-server.ts'
import { createSchemaVersions } from '#shared/io/migrations/schema-versions.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { createPostgresCheck } from '#shared/io/postgres/postgres-check.ts'
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
  stopping = true
  expect(await read('?exclude=clickhouse&exclude=process')).toEqual({
    status: 'not_ready',
    missing: { process: 'is stopping' },
    warnings,
  })
  await server.close()
})

it('a probe of a process that only warns of a read-only Postgres reads it once', async () => {
  const queries: string[] = []
  const answers = { version: '18.1', is_read_only: true, name: '9999-later.sql' }
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
  }
  await server.close()
})
