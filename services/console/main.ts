/** The console process: wires the admin API to its databases, keeps the directory, drains. */
import { randomBytes } from 'node:crypto'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import { createPrevalenceSpikeStore } from '#shared/io/analytics/prevalence-spike-store.ts'
import { createRulePerformanceStore } from '#shared/io/analytics/rule-performance-store.ts'
import { checkClickhouse, createClickhouse, databaseOf } from '#shared/io/clickhouse/clickhouse.ts'
import { publishTenantHint } from '#shared/io/deliveries/delivery-hint-publisher.ts'
import { checkWebhookTarget } from '#shared/io/deliveries/outbound-http.ts'
import { createErasureStore } from '#shared/io/erasure/erasure-store.ts'
import { closeHttp } from '#shared/io/http/close-http.ts'
import { listen } from '#shared/io/http/http-server.ts'
import { serveInternally } from '#shared/io/http/internal-server.ts'
import { openNats } from '#shared/io/nats/nats.ts'
import { createShadowComparisonStore } from '#shared/io/policies/shadow-comparison-store.ts'
import { createPostgres, PostgresUnavailableError } from '#shared/io/postgres/postgres.ts'
import { toNatsSettings } from '#shared/io/process/config.ts'
import { createFaultTeller } from '#shared/io/process/connect-faults.ts'
import { createLifecycle, run } from '#shared/io/process/lifecycle.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createReconciliationStore } from '#shared/io/reconciliation/reconciliation-store.ts'
import { createEventStore } from '#shared/io/telemetry/event-store.ts'
import { createUnknownSignalStore } from '#shared/io/telemetry/unknown-signal-store.ts'
import { listProjectedElsewhere } from '#shared/io/tenants/directory/directory-scan.ts'
import { createTenantProjection } from '#shared/io/tenants/directory/tenant-projection.ts'
import { createSealer, toMasterKeys } from '#shared/io/tenants/sealed-secrets.ts'
import { listStaleSecretRequests } from '#shared/io/tenants/stale-secret-requests.ts'
import { createKnownStore } from '#shared/io/velocity/known-store.ts'
import { type ConsoleDeps, createConsoleApp } from './app.ts'
import { readConsoleConfig } from './config.ts'
import { createErase } from './erasure/erase.ts'
import { requireMasterKey, startDirectoryReconciler } from './jobs/directory-reconciler.ts'
import { createStackTeller } from './jobs/local-stack.ts'
import { createPrevalenceSpikes } from './jobs/prevalence-spikes.ts'
import { createReconciliationKeeper } from './jobs/reconciliation.ts'
import { createReplication } from './jobs/replication.ts'
import { createBacktests } from './policies/backtest.ts'
import { createRetention } from './retention/retention.ts'
import { createDirectoryWriter } from './tenants/directory.ts'
import { createLockPools } from './tenants/lock-pools.ts'

const nowMs = () => performance.now()

/** A mutation rewrites parts of any size; it goes on when nobody waits for it any more. */
const mutationMaxMs = 30 * 60 * 1000

/** A slice of a backtest: the engine ends it after 300 seconds. */
const sliceMaxMs = 310_000

/**
 * How long a stop waits for requests: a rotation waits for edges, and all else ends at once.
 */
const unfinishedMs = 6_500

async function main(): Promise<void> {
  const config = readConsoleConfig(process.env)
  const log = createLog('console', config.LOG_LEVEL)
  const lifecycle = createLifecycle(log, config.PARENT_PID)
  const metrics = createMetrics('console')
  const sealer = createSealer(toMasterKeys(config))

  const teller = createFaultTeller('Postgres', log)
  const postgres = createPostgres(config.POSTGRES_URL, { role: 'console', log, teller, metrics })
  lifecycle.onStop('postgres', postgres.close)
  const {
    changes,
    jobs,
    close: closeLocks,
  } = createLockPools(config.POSTGRES_URL, {
    work: postgres,
    log,
    teller,
  })
  lifecycle.onStop('locks', closeLocks)
  await requireMasterKey(postgres, sealer).catch((error: unknown) => {
    if (!(error instanceof PostgresUnavailableError)) throw error
    log.warn('Postgres does not answer yet, so MASTER_KEY was not compared with what is stored')
  })

  // Asked by operators only; the console does not wait for it.
  const clickhouse = createClickhouse(config.CLICKHOUSE_URL, { name: 'console' })
  lifecycle.onStop('clickhouse', () => clickhouse.close())
  // Why it fails is said at start, not only when the first operator asks.
  void checkClickhouse(clickhouse, createFaultTeller('ClickHouse', log))
  const mutations = createClickhouse(config.CLICKHOUSE_URL, {
    name: 'console erasures',
    requestTimeoutMs: mutationMaxMs,
  })
  lifecycle.onStop('mutations', () => mutations.close())

  const slices = createClickhouse(config.CLICKHOUSE_URL, {
    name: 'console backtests',
    requestTimeoutMs: sliceMaxMs,
  })
  lifecycle.onStop('slices', () => slices.close())

  const reconciliation = createReconciliationStore(
    clickhouse,
    toAnalyticsDatabase(databaseOf(config.CLICKHOUSE_URL)),
  )
  // Reading and suspending go on without NATS, so the console does not wait for it.
  const link = openNats(toNatsSettings(config), 'console', log)
  lifecycle.onStop('nats', link.close)
  const findNats = link.find
  const internalUrl = await serveInternally({
    lifecycle,
    log,
    metrics,
    address: config.CONSOLE_INTERNAL_LISTEN,
    readyChecks: { postgres: postgres.checkReady, nats: link.fault },
  })
  const projection = createTenantProjection({ findNats, sealer, postgres, log, metrics, nowMs })
  const outcomes = metrics.counter('di_rotations_total', 'Rotations of HMAC secrets and keys', [
    'outcome',
  ])
  const erasures = metrics.counter('di_erasures_total', 'Erasures of devices and users', [
    'outcome',
  ])
  const rewraps = metrics.counter(
    'di_secrets_rewrapped_total',
    'Secrets that were sealed again under MASTER_KEY, and tenants for which that failed',
    ['outcome'],
  )
  const backtests = createBacktests({
    postgres,
    locks: jobs,
    clickhouse: slices,
    log,
    metrics,
    nowMs,
  })
  const deps: ConsoleDeps = {
    postgres,
    locks: changes,
    sealer,
    log,
    nowMs,
    randomBytes,
    projection,
    adminToken: config.ADMIN_TOKEN,
    directory: createDirectoryWriter(findNats, sealer, nowMs),
    onOutcome: (outcome) => outcomes.inc({ outcome }),
    onRotated: createStackTeller(process),
    onRewrap: (outcome, count) => rewraps.inc({ outcome }, count),
    listProjectedElsewhere: async () => {
      const nats = findNats()
      if (nats === null) throw new Error('NATS is not connected')
      return listProjectedElsewhere(nats, sealer)
    },
    checkWebhookUrl: (url, environment) =>
      checkWebhookTarget(url, {
        environment,
        allowPrivate: config.ALLOW_PRIVATE_WEBHOOKS,
        allowNetworks: config.WEBHOOK_ALLOW_NETWORKS,
      }),
    setDisposition: createAlertStore(postgres).setDisposition,
    hintDelivery: async (hint) => {
      const nats = findNats()
      if (nats === null) throw new Error('NATS is not connected')
      await publishTenantHint(nats, hint)
    },
    findEvent: createEventStore(clickhouse).findEvent,
    findKnown: createKnownStore(clickhouse).findKnown,
    readReconciliation: reconciliation.readReconciliation,
    readRulePerformance: createRulePerformanceStore(clickhouse).readRulePerformance,
    compareShadow: createShadowComparisonStore(clickhouse).compareShadow,
    prevalenceSpikes: createPrevalenceSpikeStore(clickhouse),
    ...createUnknownSignalStore(clickhouse),
    listStaleSecretRequests: async (secret) => {
      const nats = findNats()
      if (nats?.connected() !== true) throw new Error('NATS is not connected')
      return listStaleSecretRequests(nats, secret)
    },
    analysts: {
      clickhouse,
      database: databaseOf(config.CLICKHOUSE_URL),
      clickhouseUrl: config.CLICKHOUSE_URL,
      url: config.ANALYSTS_URL ?? null,
    },
    wallMs: Date.now,
    backtests,
    erase: createErase({
      locks: jobs,
      store: createErasureStore(mutations),
      findNats,
      nowMs,
      wallMs: Date.now,
      onOutcome: (outcome) => erasures.inc({ outcome }),
    }),
  }
  const reconciler = startDirectoryReconciler({ rotation: deps, projection, log, metrics })
  lifecycle.onStop('directory reconciler', reconciler.stop)
  const wallMs = Date.now
  const retention = createRetention({
    postgres,
    locks: jobs,
    clickhouse,
    log,
    metrics,
    nowMs,
    wallMs,
  })
  lifecycle.onStop('retention', retention.start().stop)
  const replication = createReplication({
    postgres,
    locks: jobs,
    clickhouse,
    log,
    metrics,
    nowMs,
    wallMs,
  })
  lifecycle.onStop('replication', replication.start().stop)
  const prevalenceSpikes = createPrevalenceSpikes({
    locks: jobs,
    clickhouse: mutations,
    log,
    metrics,
    wallMs,
  })
  lifecycle.onStop('prevalence spikes', prevalenceSpikes.start().stop)
  const keeper = createReconciliationKeeper({
    findNats,
    postgres,
    locks: jobs,
    clickhouse,
    log,
    metrics,
    nowMs,
    wallMs,
    store: reconciliation,
  })
  lifecycle.onStop('reconciliation', keeper.start().stop)

  const app = await createConsoleApp(deps, {
    log,
    metrics,
    trustedProxies: config.TRUSTED_PROXIES,
  })
  lifecycle.onStop('http', () => closeHttp(app, unfinishedMs))
  lifecycle.onStop('backtests', backtests.stop)
  const url = await listen(app, config.CONSOLE_LISTEN)
  log.info({ url, internal_url: internalUrl }, 'listening')
}

run(main)
