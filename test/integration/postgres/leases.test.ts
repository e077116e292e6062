// Leases on a real PostgreSQL: a process that hangs keeps nothing, what it writes late is refused,
// and a holder that works keeps its lease for as long as it needs.
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { withLease } from '#shared/io/leases/leases.ts'
import {
  createPostgres,
  type Postgres,
  PostgresUnavailableError,
} from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { startTakeovers } from '../../../services/console/jobs/takeovers.ts'
import { takeLeaseAway } from '../../support/leases/lost-lease.ts'
import { nodeEnv } from '../../support/process/node-env.ts'
import { killChild } from '../../support/process/service-process.ts'
import { until } from '../../support/process/until.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const log = createLog('test', 'silent')
/** So short that a test sees leases end, and so long that a working process renews in time. */
const shortMs = 1_000

let server: TestPostgres
let url: string
let postgres: Postgres

beforeAll(async () => {
  server = await startPostgres()
  url = await server.createMigratedDatabase()
  postgres = createPostgres(url, { role: 'test', log, lockTimeoutMs: 200 })
  await postgres.query('create table written (by text)')
})
afterAll(async () => {
  await postgres?.close()
  await server?.stop()
})
afterEach(async () => {
  await postgres.query('truncate written, leases')
})

const takeover = <T>(name: string, work: () => Promise<T>) =>
  withLease({ renewals: postgres, work: postgres }, name, work)
const readExpiry = async (name: string) => {
  const { rows } = await postgres.query<{ at: string }>(
    'select expires_at::text as at from leases where name = $1',
    [name],
  )
  return rows[0]?.at
}
const readWriters = async () => {
  const { rows } = await postgres.query<{ by: string }>('select by from written')
  return rows.map(({ by }) => by)
}

/** Starts a process that has the lease `job`. */
async function startHolder(): Promise<{ child: ChildProcess; lines: () => string[] }> {
  const child = spawn(
    process.execPath,
    ['test/support/leases/lease-holder.ts', url, String(shortMs)],
    { cwd: projectDir, env: nodeEnv(), stdio: ['pipe', 'pipe', 'inherit'] },
  )
  let output = ''
  child.stdout!.on('data', (chunk: Buffer) => {
    output += chunk
  })
  const lines = () => output.split('\n').filter((line) => line !== '')
  await until('it has the lease', () => lines().includes('held'))
  return { child, lines }
}

it('a process that hangs loses its work, and writes nothing more when it goes on', async () => {
  const { child, lines } = await startHolder()
  try {
    expect(lines()).toEqual([
      ...['transaction', 'insert', 'command', 'check'].map((name) => `${name} done`),
      'held',
    ])
    expect(await readWriters()).toEqual(['the first'])
    child.kill('SIGSTOP')
    await postgres.query('truncate written')
    const work = async () => {
      await postgres.query(`insert into written (by) values ('the second')`)
      child.kill('SIGCONT')
      child.stdin!.write('go on\n')
      await until('it has tried each write', () => lines().includes('lost'))
      return true
    }
    await until('another process takes over', () => takeover('job', work))
    expect(lines().slice(5)).toEqual([
      ...['transaction', 'insert', 'command', 'check'].map((name) => `${name} refused`),
      'lost',
    ])
    expect(await readWriters()).toEqual(['the second'])
  } finally {
    await killChild(child)
  }
})

it('a holder that works keeps its lease, also during a long transaction', async () => {
  const leases = { renewals: postgres, work: postgres, leaseMs: shortMs }
  const renewals = new Set<string | undefined>()
  const isRenewed = (times: number) => async () => {
    renewals.add(await readExpiry('long'))
    return renewals.size > times
  }
  await withLease(leases, 'long', async (lease) => {
    await until('more time passes than a lease', isRenewed(6))
    await lease.transaction(() => until('the same', isRenewed(12)))
    await lease.query(`insert into written (by) values ('the holder')`)
  })
  expect(await readWriters()).toEqual(['the holder'])
  expect(await takeover('long', async () => 'taken')).toBe('taken')
})

it('a transaction that began under a lease ends before the next holder has it', async () => {
  const patient = { renewals: postgres, work: postgres, leaseMs: 3_600_000 }
  await withLease(patient, 'handed', async (lease) => {
    await lease.transaction(async (tx) => {
      await postgres.query(`update leases set expires_at = 'epoch' where name = 'handed'`)
      expect(await takeover('handed', async () => 'taken')).toBeNull()
      await tx.query(`insert into written (by) values ('the holder')`)
    })
    // Expired, and still its own: no other process wanted it.
    await lease.query(`insert into written (by) values ('the holder')`)
    expect(await takeover('handed', readWriters)).toEqual(['the holder', 'the holder'])
    const late = lease.query(`insert into written (by) values ('late')`)
    await expect(late).rejects.toBeInstanceOf(PostgresUnavailableError)
    expect(lease.signal.aborted).toBe(true)
    // Its end takes nothing from the next holder either.
  })
  expect(await readWriters()).toEqual(['the holder', 'the holder'])
})

it('an expired lease is taken over by one of all consoles, at once', async () => {
  const rounds: string[] = []
  const rounding = (of: string) => ({ abandoned: async () => rounds.push(of) })
  await postgres.query(
    `insert into leases values ('abandoned', gen_random_uuid(), 'host 1', 'epoch'),
       ('held', gen_random_uuid(), 'host 1', 'infinity')`,
  )
  const consoles = ['one', 'other'].map((of) =>
    startTakeovers({ postgres, log, rounds: rounding(of) }),
  )
  await until('it is done', () => rounds.length > 0)
  await Promise.all(consoles.map((one) => one.stop()))
  expect(rounds).toHaveLength(1)
  const { rows } = await postgres.query('select name from leases')
  expect(rows).toEqual([{ name: 'held' }])
})

it('the end of a holder that lost its lease leaves the next one its own', async () => {
  const leases = { renewals: postgres, work: postgres }
  const next = Promise.withResolvers<void>()
  let second: Promise<unknown> = Promise.resolve()
  await withLease(leases, 'ended', async () => {
    await takeLeaseAway(postgres, 'ended')
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    second = takeover('ended', async () => {
      begin()
      await next.promise
    })
    await begun
  })
  expect(await takeover('ended', async () => 'taken')).toBeNull()
  next.resolve()
  await second
  expect(await takeover('ended', async () => 'taken')).toBe('taken')
})

it('a lease that is lost refuses the writes of every shard and replica, and no reading', async () => {
  const node = () => {
    const done: string[] = []
    const act = (name: string) => async () => {
      done.push(name)
    }
    const names = ['query', 'insert', 'command', 'exec'] as const
    return { done, ...Object.fromEntries(names.map((name) => [name, act(name)])) }
  }
  const [all, shard, replica] = [node(), node(), node()]
  const clickhouse = {
    ...all,
    shards: [{ ...shard, replicas: [replica] }],
  } as object as Clickhouse
  const leases = { renewals: postgres, work: postgres, leaseMs: shortMs }
  await withLease(leases, 'fenced', async (lease) => {
    const fenced = lease.fence(clickhouse)
    const nodes = [fenced, fenced.shards[0]!, fenced.shards[0]!.replicas[0]!]
    await takeLeaseAway(postgres, 'fenced')
    await until('it is noticed', () => lease.signal.aborted)
    for (const one of nodes) {
      for (const write of [
        one.insert({ table: 'any', values: [] }),
        one.command({ query: 'any' }),
        one.exec({ query: 'any' }),
      ]) {
        await expect(write).rejects.toBeInstanceOf(PostgresUnavailableError)
      }
      await one.query({ query: 'any' })
    }
  })
  for (const { done } of [all, shard, replica]) expect(done).toEqual(['query'])
})
