/** The five processes on their own servers; each can be stopped by SIGTERM and started again. */
import { randomBytes } from 'node:crypto'
import { type Clickhouse, createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { connectNats } from '#shared/io/nats/connection.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { SERVICE_NAMES, type ServiceName } from '../../../deploy/local/stack/settings.ts'
import { callAdmin } from '../../support/http/tenant-client.ts'
import { type Closing, startWhole } from '../../support/process/closing.ts'
import { createServiceProcess, type ServiceProcess } from '../../support/process/service-process.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { migrateClickhouse, migratePostgres } from '../../support/servers/databases.ts'
import { startNats } from '../../support/servers/nats/nats-server.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { quietLog } from '../../support/telemetry/edge-rig.ts'

export type Processes = {
  services: Record<ServiceName, ServiceProcess>
  postgres: Postgres
  clickhouse: Clickhouse
  /** POST to the admin API. @throws on anything but a 2xx */
  admin: (path: string, body: object) => Promise<Record<string, unknown>>
  adminToken: string
  stop: () => Promise<void>
}

/** Starts the servers, migrates them, and starts all five. */
export async function startProcesses(): Promise<Processes> {
  return await startWhole(startAll)
}

async function startAll(closing: Closing, stop: () => Promise<void>): Promise<Processes> {
  const starting = [startNats(), startPostgres(), startClickhouse()] as const
  const [server, database, engine] = await Promise.all(starting)
  closing.push(server.stop, database.stop, engine.stop)
  const postgresUrl = await database.createDatabase()
  const nats = await connectNats(server.url, 'test', quietLog)
  closing.push(nats.close)
  await Promise.all([
    migratePostgres(postgresUrl).then(() => migrateClickhouse(engine.url, postgresUrl)),
    ensureStreams(nats),
  ])
  const postgres = createPostgres(postgresUrl, {
    role: 'test',
    log: quietLog,
    statementTimeoutMs: 60_000,
  })
  const clickhouse = createClickhouse(engine.url, { name: 'test' })
  closing.push(postgres.close, () => clickhouse.close())
  const adminToken = randomBytes(32).toString('base64url')
  const env = {
    POSTGRES_URL: postgresUrl,
    CLICKHOUSE_URL: engine.url,
    MASTER_KEY: randomBytes(32).toString('base64'),
    ADMIN_TOKEN: adminToken,
    ALLOW_PRIVATE_WEBHOOKS: '1',
    LOG_LEVEL: 'warn',
  }
  const services = {} as Record<ServiceName, ServiceProcess>
  for (const name of SERVICE_NAMES) {
    services[name] = await createServiceProcess(name, {
      ...env,
      NATS_URL: name === 'api' ? server.url : server.urlOf(name),
    })
    closing.push(services[name].kill)
  }
  await Promise.all(SERVICE_NAMES.map((name) => services[name].start()))
  return {
    services,
    postgres,
    clickhouse,
    adminToken,
    stop,
    admin: (path, body) =>
      callAdmin(services.console.url, adminToken, { method: 'POST', path, body }),
  }
}
