/** The console process: wires the admin API to its databases, keeps the directory, drains. */
import { randomBytes } from 'node:crypto'
import { createAlertStore } from '#shared/io/alert-store.ts'
import { createClickhouse } from '#shared/io/clickhouse.ts'
import { createDeliveryStore } from '#shared/io/delivery-store.ts'
import { createEventStore } from '#shared/io/event-store.ts'
import { listen } from '#shared/io/http-server.ts'
import { createKnownStore } from '#shared/io/known-store.ts'
import { createLifecycle, run } from '#shared/io/lifecycle.ts'
import { createLog, type Log } from '#shared/io/log.ts'
import { createMetrics } from '#shared/io/metrics.ts'
import { connectNats, type Nats } from '#shared/io/nats.ts'
import { checkWebhookTarget } from '#shared/io/outbound-http.ts'
import { createPostgres, PostgresUnavailableError } from '#shared/io/postgres.ts'
import { createSealer } from '#shared/io/sealed-secrets.ts'
import { createTenantProjection } from '#shared/io/tenant-projection.ts'
import { createUnknownSignalStore } from '#shared/io/unknown-signal-store.ts'
import { type ConsoleDeps, createConsoleApp } from './app.ts'
import { readConsoleConfig } from './config.ts'
import { createDirectoryWriter } from './directory.ts'
import { requireMasterKey, startUpkeep } from './upkeep.ts'

const nowMs = () => performance.now()

async function main(): Promise<void> {
  const config = readConsoleConfig(process.env)
  const log = createLog('console', config.LOG_LEVEL)
  const lifecycle = createLifecycle(log, config.PARENT_PID)
  const metrics = createMetrics('console')
  const sealer = createSealer([config.MASTER_KEY])

  const postgres = createPostgres(config.POSTGRES_URL, { role: 'console', log, metrics })
  lifecycle.onStop('postgres', postgres.close)
  // A change holds its connection for as long as it waits: for its turn, then for the edges.
  const locks = createPostgres(config.POSTGRES_URL, {
    role: 'console changes',
    log,
    lockTimeoutMs: 10_000,
    statementTimeoutMs: 15_000,
    connectTimeoutMs: 10_000,
  })
  lifecycle.onStop('locks', locks.close)
  await requireMasterKey(postgres, sealer).catch((error: unknown) => {
    if (!(error instanceof PostgresUnavailableError)) throw error
    log.warn('Postgres does not answer yet, so MASTER_KEY was not compared with what is stored')
  })

  // Asked by operators only; the console does not wait for it.
  const clickhouse = createClickhouse(config.CLICKHOUSE_URL, { name: 'console' })
  lifecycle.onStop('clickhouse', () => clickhouse.close())

  const findNats = connectInBackground(config.NATS_URL, log, lifecycle.onStop)
  const projection = createTenantProjection({ findNats, postgres, log, metrics })
  const outcomes = metrics.counter('di_rotations_total', 'Rotations of HMAC secrets and keys', [
    'outcome',
  ])
  const deps: ConsoleDeps = {
    postgres,
    locks,
    sealer,
    log,
    nowMs,
    randomBytes,
    projection,
    adminToken: config.ADMIN_TOKEN,
    directory: createDirectoryWriter(findNats, nowMs),
    onOutcome: (outcome) => outcomes.inc({ outcome }),
    checkWebhookUrl: (url, environment) =>
      checkWebhookTarget(url, { environment, allowPrivate: config.ALLOW_PRIVATE_WEBHOOKS }),
    setDisposition: createAlertStore(postgres).setDisposition,
    listDeliveries: createDeliveryStore(postgres).listDeliveries,
    findEvent: createEventStore(clickhouse).findEvent,
    findKnown: createKnownStore(clickhouse).findKnown,
    listUnknownSignals: createUnknownSignalStore(clickhouse).listUnknownSignals,
    wallMs: Date.now,
  }
  const upkeep = startUpkeep({ rotation: deps, projection, log, metrics })
  lifecycle.onStop('upkeep', upkeep.stop)

  const app = await createConsoleApp(deps, {
    log,
    metrics,
    stopping: lifecycle.stopping,
    readyChecks: {
      postgres: postgres.checkReady,
      nats: () => (findNats()?.connected() ? null : 'is not connected'),
    },
  })
  lifecycle.onStop('http', () => app.close())
  const url = await listen(app, config.CONSOLE_LISTEN)
  log.info({ url }, 'listening')
}

/** Reading and suspending go on without NATS, so the console does not wait for it. */
function connectInBackground(
  url: string,
  log: Log,
  onStop: (name: string, step: () => Promise<void> | void) => void,
): () => Nats | null {
  let nats: Nats | null = null
  connectNats(url, 'console', log).then(
    (connected) => {
      nats = connected
    },
    (error: unknown) => log.fatal({ err: error }, 'NATS refuses the connection'),
  )
  onStop('nats', () => nats?.close())
  return () => nats
}

run(main)
