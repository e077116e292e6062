// Two consoles, of which one hangs in the middle of a job: the other one goes on with it once the
// lease has expired, the first one's late writes are refused, and it goes on working.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { type LeaseWatch, watchLeases } from '../../faults/hangs/hung-holder.ts'
import { createServiceProcess, type ServiceProcess } from '../../support/process/service-process.ts'
import { until } from '../../support/process/until.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'
import { startNats, type TestNats } from '../../support/servers/nats/nats-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

let servers: { postgres: TestPostgres; nats: TestNats; clickhouse: TestClickhouse }
let consoles: ServiceProcess[] = []
let postgres: Postgres
let watch: LeaseWatch

beforeAll(async () => {
  const [server, nats, clickhouse] = await Promise.all([
    startPostgres(),
    startNats(),
    startClickhouse({ isMigrated: true }),
  ])
  servers = { postgres: server, nats, clickhouse }
  const url = await server.createMigratedDatabase()
  postgres = createPostgres(url, { role: 'test', log: createLog('test', 'silent') })
  watch = await watchLeases(url)
  const env = {
    MASTER_KEY: randomBytes(32).toString('base64'),
    NATS_URL: nats.url,
    POSTGRES_URL: url,
    CLICKHOUSE_URL: clickhouse.url,
    ADMIN_TOKEN: randomBytes(32).toString('base64url'),
    LOG_LEVEL: 'warn',
  }
  consoles = [
    await createServiceProcess('console', env),
    await createServiceProcess('console', env),
  ]
  await Promise.all(consoles.map((one) => one.start()))
})
afterAll(async () => {
  await Promise.all(consoles.map((one) => one.kill()))
  await watch?.close()
  await postgres?.close()
  await servers?.clickhouse.stop()
  await Promise.all([servers?.postgres.stop(), servers?.nats.stop()])
})

it.each(['reconciliation', 'replication', 'retention'])(
  'a console that hangs in %s keeps nothing from the other one',
  async (name) => {
    const stopped = await watch.stopHolder(name, () =>
      postgres.query('update retention_rounds set due_at = clock_timestamp()'),
    )
    const other = consoles.find((one) => one.pid() !== stopped.pid)!
    try {
      await stopped.awaitTakeover()
      expect(await other.isReady()).toBe(true)
    } finally {
      stopped.resume()
    }
    await until('both work', async () => (await consoles[0]!.isReady()) && consoles[1]!.isReady())
  },
)

it('all consoles go on to share the jobs', async () => {
  await postgres.query('update retention_rounds set due_at = clock_timestamp()')
  await until('the round was run by one of them', async () => {
    const { rows } = await postgres.query('select from retention_rounds where due_at > now()')
    return rows.length === 1
  })
  expect(consoles.map((one) => one.isAlive())).toEqual([true, true])
})
