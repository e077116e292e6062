/**
 * A POSTGRES_URL with a primary and its standby, on two real servers with streaming replication:
 * the short form of `npm run faults -- standby`.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  createPostgres,
  type Postgres,
  type PostgresOptions,
  PostgresUnavailableError,
} from '#shared/io/postgres/postgres.ts'
import { createFaultReporter } from '#shared/io/process/connect-faults.ts'
import { createLog } from '#shared/io/process/log.ts'
import { until } from '../../support/process/until.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import { startStandby, type TestStandby } from '../../support/servers/postgres-standby.ts'

const log = createLog('test', 'silent')
let primary: TestPostgres
let standby: TestStandby
const pools: Postgres[] = []

/** A pool on hosts in this order. */
function open(
  ports: number[],
  parameters = '?target_session_attrs=read-write',
  options: Partial<PostgresOptions> = {},
): Postgres {
  const { username, password, pathname } = new URL(primary.url)
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join(',')
  const url = `postgres://${username}:${password}@${hosts}${pathname}${parameters}`
  const pool = createPostgres(url, { role: 'test', log, ...options })
  pools.push(pool)
  return pool
}

const portOf = async (pool: Postgres) => {
  const { rows } = await pool.query<{ port: string }>(`select current_setting('port') as port`)
  return Number(rows[0]!.port)
}

beforeAll(async () => {
  primary = await startPostgres()
  standby = await startStandby(primary, { synchronous: true })
})
afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.close()))
  await Promise.all([primary?.stop(), standby?.stop()])
})

describe('a URL with several hosts', () => {
  it('uses the one that takes writes, in any order', async () => {
    expect(await portOf(open([standby.port, primary.port]))).toBe(primary.port)
    expect(await portOf(open([primary.port, standby.port]))).toBe(primary.port)
  })

  it('moves on from a dead one although more callers than connections wait', async () => {
    const pool = open([1, primary.port], undefined, { connectionsMax: 1 })
    const ports = await Promise.all(Array.from({ length: 5 }, () => portOf(pool)))
    expect(ports).toEqual(Array.from({ length: 5 }, () => primary.port))
  })

  it('stays with the server while all connections are busy', async () => {
    const reporter = createFaultReporter('Postgres', log)
    const options = { connectionsMax: 1, connectTimeoutMs: 100, reporter }
    const pool = open([primary.port, 1], undefined, options)
    await pool.withSession(async () => {
      await expect(portOf(pool)).rejects.toThrow(PostgresUnavailableError)
    })
    expect(reporter.fault()).toBeNull()
    expect(await portOf(pool)).toBe(primary.port)
  })

  it('of which none takes writes says that it is a standby', async () => {
    expect(await open([standby.port]).checkReady()).toBe('is read-only, as a standby is')
    expect(await open([standby.port, 1]).checkReady()).not.toBeNull()
    expect(await open([standby.port], '').checkReady()).toBeNull()
  })

  it('follows a promotion under load, and keeps every commit that was acknowledged', async () => {
    const pool = open([primary.port, standby.port])
    await pool.query('create table kept (n integer primary key)')
    const acknowledged: number[] = []
    let isOver = false
    const write = async (first: number) => {
      for (let n = first; !isOver; n += 10) {
        const stored = await pool.query('insert into kept values ($1)', [n]).then(
          () => true,
          () => false,
        )
        if (stored) acknowledged.push(n)
        else await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
    const writers = Array.from({ length: 10 }, (_, first) => write(first))
    await until('writes are acknowledged', () => acknowledged.length > 200)
    await primary.kill('SIGKILL')
    const before = acknowledged.length
    await standby.promote()
    await until('writes go on', () => acknowledged.length > before + 200)
    isOver = true
    await Promise.all(writers)
    expect(await portOf(pool)).toBe(standby.port)
    const { rows } = await pool.query<{ n: number }>('select n from kept')
    const kept = new Set(rows.map(({ n }) => n))
    expect(acknowledged.filter((n) => !kept.has(n))).toEqual([])
  })
})
