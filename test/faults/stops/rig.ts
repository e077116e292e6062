/**
 * The five processes on servers of their own, each of which can be asked to end as a supervisor
 * asks, and started again on its address.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { type Closing, startWhole } from '../../support/process/closing.ts'
import { until } from '../../support/process/until.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'
import { migrateClickhouse, migratePostgres } from '../../support/servers/databases.ts'
import { startNats } from '../../support/servers/nats-server.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { chooseAddresses, type ServiceAddresses } from '../../support/servers/service-addresses.ts'
import { quietLog } from '../../support/telemetry/edge-rig.ts'
import { callAdmin } from '../support/call-admin.ts'

export const serviceNames = ['ingest', 'scorer', 'api', 'delivery', 'console'] as const
export type ServiceName = (typeof serviceNames)[number]

export type Ended = { code: number | null; signal: NodeJS.Signals | null; tookMs: number }

export type Service = {
  name: ServiceName
  port: number
  url: string
  internalUrl: string
  /** Starts it and waits until it is ready. */
  start: () => Promise<void>
  /** SIGTERM; resolves at its end. Whoever outstays 15 s is killed. */
  terminate: () => Promise<Ended>
  kill: () => Promise<void>
  /** The last it said. */
  output: () => string
}

export type Processes = {
  services: Record<ServiceName, Service>
  nats: Nats
  postgres: Postgres
  /** Runs a query on ClickHouse; @returns its rows */
  query: <T>(sql: string, params: Record<string, unknown>) => Promise<T[]>
  /** Calls the admin API. @throws on anything but a 2xx */
  admin: (path: string, body: object) => Promise<Record<string, unknown>>
  adminToken: string
  stop: () => Promise<void>
}

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const outstayMs = 15_000
/** A start takes a second; a machine that is busy with other things needs longer. */
const readyLimitMs = 60_000

/** Starts the servers, migrates them, and starts all five. */
export async function startProcesses(): Promise<Processes> {
  return await startWhole(startAll)
}

async function startAll(closing: Closing, stop: () => Promise<void>): Promise<Processes> {
  const [server, database, engine] = await Promise.all([
    startNats(),
    startPostgres(),
    startClickhouse(),
  ])
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
    NATS_URL: server.url,
    POSTGRES_URL: postgresUrl,
    CLICKHOUSE_URL: engine.url,
    MASTER_KEY: randomBytes(32).toString('base64'),
    ADMIN_TOKEN: adminToken,
    ALLOW_PRIVATE_WEBHOOKS: '1',
    LOG_LEVEL: 'warn',
  }
  const services = {} as Record<ServiceName, Service>
  for (const name of serviceNames) {
    services[name] = createService(name, await chooseAddresses(name), env)
    closing.push(services[name].kill)
  }
  await Promise.all(serviceNames.map((name) => services[name].start()))
  return {
    services,
    nats,
    postgres,
    adminToken,
    stop,
    query: async <T>(sql: string, params: Record<string, unknown>) => {
      const result = await clickhouse.query({
        query: sql,
        query_params: params,
        format: 'JSONEachRow',
      })
      return (await result.json()) as T[]
    },
    admin: (path, body) => callAdmin(services.console.url, adminToken, path, body),
  }
}

function createService(
  name: ServiceName,
  addresses: ServiceAddresses,
  env: Record<string, string>,
): Service {
  const { url, internalUrl } = addresses
  let child: ChildProcess | null = null
  let output = ''
  const isOver = (of: ChildProcess) => of.exitCode !== null || of.signalCode !== null
  const end = (signal: NodeJS.Signals) =>
    new Promise<Ended>((resolve) => {
      const ending = child
      if (ending === null || isOver(ending)) {
        resolve({ code: ending?.exitCode ?? null, signal: ending?.signalCode ?? null, tookMs: 0 })
        return
      }
      const startMs = performance.now()
      const timer = setTimeout(() => ending.kill('SIGKILL'), outstayMs)
      ending.once('exit', (code, ended) => {
        clearTimeout(timer)
        resolve({ code, signal: ended, tookMs: performance.now() - startMs })
      })
      ending.kill(signal)
    })
  return {
    name,
    port: Number(new URL(url).port),
    url,
    internalUrl,
    start: async () => {
      const started = spawn(process.execPath, [`services/${name}/main.ts`], {
        cwd: projectDir,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          PATH: process.env.PATH,
          PARENT_PID: String(process.pid),
          ...env,
          ...addresses.env,
        },
      })
      child = started
      for (const stream of [started.stdout, started.stderr]) {
        stream.on('data', (chunk: Buffer) => {
          output = (output + chunk).slice(-4_000)
        })
      }
      const isReady = async () => {
        if (isOver(started)) throw new Error(`${name} ended at its start: ${output}`)
        const answer = await fetch(`${internalUrl}/readyz`, { signal: AbortSignal.timeout(5_000) })
        if (!answer.ok) throw new Error(`${await answer.text()} ${output}`)
        return true
      }
      await until(`${name} is ready`, isReady, readyLimitMs)
    },
    terminate: () => end('SIGTERM'),
    kill: async () => {
      await end('SIGKILL')
    },
    output: () => output,
  }
}
