/**
 * The delivery process: sends webhooks, at once after a hint and within a second without one. It
 * needs only Postgres. NATS carries hints only, so the process is ready without it.
 */
import { randomUUID } from 'node:crypto'
import { deliveryConsumer } from '#shared/core/telemetry/nats-names.ts'
import { createOutbound } from '#shared/io/deliveries/outbound/outbound-client.ts'
import { serveInternally } from '#shared/io/http/internal-server.ts'
import { readsNewForm } from '#shared/io/keys/key-form.ts'
import { createWebhookOpener, warnOfMasterKey } from '#shared/io/keys/process-keys.ts'
import { createPostgresCheck } from '#shared/io/migrations/postgres-check.ts'
import { processSessions } from '#shared/io/migrations/process-sessions.ts'
import { createSchemaVersions } from '#shared/io/migrations/schema-versions.ts'
import { openNats } from '#shared/io/nats/connection.ts'
import { type ConsumeLimits, type Consumption, consume } from '#shared/io/nats/consume/consume.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { toNatsSettings } from '#shared/io/process/config.ts'
import { createLifecycle, run } from '#shared/io/process/lifecycle.ts'
import { createLog, type Log } from '#shared/io/process/log.ts'
import { createMetrics, type Metrics } from '#shared/io/process/metrics.ts'
import { createSecretsCheck } from '#shared/io/tenants/sealed-secret-store.ts'
import { openTracing } from '#shared/io/tracing/open-tracing.ts'
import { handleHint } from './claim/handle-hint.ts'
import { type DeliveryConfig, deliveryKeyVariables, readDeliveryConfig } from './config.ts'
import { type Engine, startEngine } from './engine.ts'

/** How long a stop waits for requests in flight. Recording follows within the stop's limit. */
const stopGraceMs = 5_500

/** A new connection takes four round trips: webhooks still work if each takes 2 s. */
const connectTimeoutMs = 10_000

async function main(): Promise<void> {
  const config = readDeliveryConfig(process.env)
  const log = createLog('delivery', config.LOG_LEVEL)
  warnOfMasterKey(log, config, deliveryKeyVariables)
  const lifecycle = createLifecycle(log, { parentPid: config.PARENT_PID })
  const metrics = createMetrics('delivery')
  const tracing = await openTracing(config, { service: 'delivery', lifecycle, log, metrics })

  const postgres = createPostgres(config.POSTGRES_URL, {
    role: 'delivery',
    nameEnd: readsNewForm,
    log,
    metrics,
    ...processSessions.delivery,
    connectTimeoutMs,
  })
  lifecycle.onStop('postgres', postgres.close)
  const schemas = createSchemaVersions(metrics)
  const checkPostgres = createPostgresCheck(postgres, { schemas, log })
  const opener = createWebhookOpener(config)
  const monotonicMs = () => performance.now()
  const checkSecrets = createSecretsCheck({
    postgres,
    opener,
    log,
    metrics,
    nowMs: monotonicMs,
  })
  void checkSecrets()
  const outbound = createOutbound()
  lifecycle.onStop('outbound', outbound.close)
  const engine = startEngine(
    {
      postgres,
      outbound,
      opener,
      tracing,
      log,
      metrics,
      nowMs: Date.now,
      monotonicMs,
      random: Math.random,
      newId: randomUUID,
    },
    {
      limits: {
        total: config.DELIVERY_CONCURRENCY,
        retries: Math.max(1, config.DELIVERY_CONCURRENCY >> 1),
        perTenant: config.DELIVERY_TENANT_CONCURRENCY,
      },
      allowPrivate: config.ALLOW_PRIVATE_WEBHOOKS,
      allowNetworks: config.WEBHOOK_ALLOW_NETWORKS,
    },
  )
  const hints = consumeHints({ config, engine, log, metrics })
  lifecycle.onStop('nats', hints.close)

  const url = await serveInternally({
    lifecycle,
    log,
    metrics,
    address: config.DELIVERY_LISTEN,
    readyChecks: { postgres: checkPostgres.writes, webhook_key: checkSecrets },
  })
  lifecycle.onStop('engine', async () => {
    await Promise.all([engine.stop(stopGraceMs), hints.stop()])
  })
  log.info({ url }, 'listening')
}

/** Hints are handled at once: nothing is gained by larger batches. */
const hintLimits: ConsumeLimits = {
  batchMessagesMax: 256,
  batchBytesMax: 64 * 1024,
  batchIntervalMs: 0,
  batchIntervalMaxMs: 0,
}

/** Consumes hints once NATS is connected. Without NATS deliveries wait for the next sweep. */
function consumeHints(options: {
  config: DeliveryConfig
  engine: Engine
  log: Log
  metrics: Metrics
}): {
  stop: () => Promise<void>
  close: () => Promise<void>
} {
  const { config, engine, log, metrics } = options
  const link = openNats(toNatsSettings(config), 'delivery', log)
  let consumption: Consumption | null = null
  metrics.gauge('di_delivery_hints_connected', 'Whether hints can arrive: NATS is connected', {
    collect() {
      this.set(link.find()?.connected() ? 1 : 0)
    },
  })
  link.opened.then(
    (nats) => {
      consumption = consume({
        nats,
        durable: deliveryConsumer,
        handle: async (messages) => {
          for (const { data } of messages) handleHint(data, engine.wake, engine.metrics)
        },
        limits: hintLimits,
        log,
        metrics,
      })
    },
    () => undefined,
  )
  return {
    stop: async () => consumption?.stop(),
    close: link.close,
  }
}

run(main)
