/** PostgreSQL, nats-server, tenants, the faulty receiver and delivery processes, all real. */
import { fork } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import {
  createDeliveryFixtures,
  testMasterKey,
} from '../../support/deliveries/delivery-fixtures.ts'
import { type DeliveryProcess, startDelivery } from '../../support/deliveries/delivery-process.ts'
import { type Closing, startWhole } from '../../support/process/closing.ts'
import { killChild } from '../../support/process/service-process.ts'
import { until } from '../../support/process/until.ts'
import { migratePostgres } from '../../support/servers/databases.ts'
import { startNats } from '../../support/servers/nats/nats-server.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import type { ReceiverOrders, ReceiverProgress, ReceiverReport, SeenRequest } from './receiver.ts'

export type ReceiverProcess = {
  port: number
  progress: () => ReceiverProgress
  /** Ends it. @returns every request in the order of arrival */
  end: () => Promise<SeenRequest[]>
}

export type DeliveryRig = {
  postgres: Postgres
  nats: Nats
  tenantIds: string[]
  receiver: ReceiverProcess
  processes: DeliveryProcess[]
  /** Waits until no work of a killed process is left in Postgres and at the receiver. */
  settle: () => Promise<void>
  stop: () => Promise<void>
}

export type RigOptions = Pick<ReceiverOrders, 'seed' | 'shares' | 'slowMs'> & {
  tenants: number
  processes: number
  /** More settings of the delivery processes, such as DELIVERY_CONCURRENCY. */
  env: Record<string, string>
}

const quietLog = createLog('test', 'silent')

/** Starts everything; the delivery processes may not be ready yet. */
export async function startDeliveryRig(options: RigOptions): Promise<DeliveryRig> {
  return await startWhole((closing, stop) => startAll(options, closing, stop))
}

async function startAll(
  options: RigOptions,
  closing: Closing,
  stop: () => Promise<void>,
): Promise<DeliveryRig> {
  const [server, database] = await Promise.all([startNats(), startPostgres()])
  closing.push(server.stop, database.stop)
  const postgresUrl = await database.createDatabase()
  const nats = await connectNats(server.url, 'test', quietLog)
  closing.push(nats.close)
  await Promise.all([migratePostgres(postgresUrl), ensureStreams(nats)])
  const postgres = createPostgres(postgresUrl, {
    role: 'test',
    log: quietLog,
    // At the end the drill reads everything at once.
    statementTimeoutMs: 120_000,
  })
  closing.push(postgres.close)
  const { receiver, tenantIds } = await startReceiver(options, postgres, closing)
  const env = {
    POSTGRES_URL: postgresUrl,
    NATS_URL: server.urlOf('delivery'),
    MASTER_KEY: testMasterKey,
    DELIVERY_LISTEN: '127.0.0.1:0',
    ALLOW_PRIVATE_WEBHOOKS: '1',
    LOG_LEVEL: 'warn',
    ...options.env,
  }
  const processes = Array.from({ length: options.processes }, () => startDelivery(env))
  for (const { kill } of processes) closing.push(kill)
  return {
    postgres,
    nats,
    tenantIds,
    receiver,
    processes,
    stop,
    settle: () => settle(postgres, receiver, options.processes),
  }
}

/** Sandbox tenants, each with its own path at one receiver. */
async function startReceiver(options: RigOptions, postgres: Postgres, closing: Closing) {
  const fixtures = createDeliveryFixtures(postgres)
  const secrets: Record<string, string> = {}
  for (let n = 0; n < options.tenants; n++) {
    const { tenantId, secret } = await fixtures.addTenant()
    secrets[tenantId] = secret
  }
  const dir = await mkdtemp(join(tmpdir(), 'di-receiver-'))
  closing.push(() => rm(dir, { recursive: true, force: true }))
  const { seed, shares, slowMs } = options
  const receiver = await launchReceiver(
    { seed, shares, slowMs, secrets, file: join(dir, 'requests') },
    closing,
  )
  const tenantIds = Object.keys(secrets)
  for (const tenantId of tenantIds) {
    await fixtures.setWebhook(tenantId, `http://127.0.0.1:${receiver.port}/${tenantId}`)
  }
  return { receiver, tenantIds }
}

async function launchReceiver(orders: ReceiverOrders, closing: Closing): Promise<ReceiverProcess> {
  const program = fileURLToPath(new URL('./receiver.ts', import.meta.url))
  const child = fork(program, ['serve'], { execArgv: [] })
  closing.push(() => killChild(child))
  let progress: ReceiverProgress = { place: 0, requests: 0, delivered: 0, connections: 0 }
  const reports = (kind: ReceiverReport['kind']) =>
    new Promise<ReceiverReport>((resolve, reject) => {
      child.once('exit', () => reject(new Error('the receiver ended by itself')))
      child.on('message', (message) => {
        const report = message as ReceiverReport
        if (report.kind === kind) resolve(report)
      })
    })
  child.on('message', (message) => {
    const report = message as ReceiverReport
    if (report.kind === 'progress') progress = report
  })
  const listening = reports('listening')
  child.send(orders)
  const report = await listening
  return {
    port: report.kind === 'listening' ? report.port : 0,
    progress: () => progress,
    end: async () => {
      const done = reports('done')
      child.send('end')
      await done
      const lines = (await readFile(orders.file, 'utf8')).split('\n').slice(0, -1)
      const seen = lines.map((line) => JSON.parse(line) as SeenRequest)
      return seen.sort((a, b) => a.place - b.place)
    },
  }
}

/** With one process: waits until Postgres and the receiver have no connection of it. */
async function settle(
  postgres: Postgres,
  receiver: ReceiverProcess,
  processes: number,
): Promise<void> {
  if (processes > 1) {
    // Connections of the other process look the same, so this waits for a fixed time.
    await pause(200)
    return
  }
  // The next report may be older than the kill.
  const place = receiver.progress().place + 2
  await until('the receiver has read all that the killed process sent', () => {
    const progress = receiver.progress()
    return progress.place >= place && progress.connections === 0
  })
  await until('Postgres has ended all that the killed process began', async () => {
    const { rows } = await postgres.query<{ n: number }>(
      `select count(*) as n from pg_stat_activity
       where application_name like 'device-intelligence delivery%'`,
    )
    return rows[0]!.n === 0
  })
}
