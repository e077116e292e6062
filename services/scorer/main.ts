/**
 * The scorer process: takes accepted events from JetStream, writes them to ClickHouse, decides
 * alerts and writes those to Postgres with their deliveries. Several scorers share the work.
 *
 * Storing and deciding are two consumers of one stream. A message is decided once it and all
 * messages before it are stored, by any process: the stored low watermark says up to where that is.
 * So a Postgres outage delays no history, and decisions never depend on which process was faster.
 */
import { deciderConsumer, scorerConsumer } from '#shared/core/telemetry/nats-names.ts'
import { findUnraised, raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import {
  type Clickhouse,
  checkClickhouse,
  createClickhouse,
} from '#shared/io/clickhouse/clickhouse.ts'
import { publishDeliveryHints } from '#shared/io/deliveries/publish-hints.ts'
import { type ReadyCheck, serveInternally } from '#shared/io/http/internal-server.ts'
import { type Nats, openNats } from '#shared/io/nats/connection.ts'
import { type ConsumedMessage, consume } from '#shared/io/nats/consume/consume.ts'
import { readDecidedWatermark, readStoredWatermark } from '#shared/io/nats/consume/low-watermark.ts'
import { createDeadLetters } from '#shared/io/nats/dead-letters.ts'
import { observeStreams } from '#shared/io/nats/streams/stream-metrics.ts'
import { createPolicyDocuments } from '#shared/io/policies/policy-document-store.ts'
import { createShadowDecisionWriter } from '#shared/io/policies/shadow-decision-store.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { toNatsSettings } from '#shared/io/process/config.ts'
import { createFaultReporter } from '#shared/io/process/connect-faults.ts'
import { createLifecycle, run } from '#shared/io/process/lifecycle.ts'
import { createLog, type Log } from '#shared/io/process/log.ts'
import { createMetrics, type Metrics } from '#shared/io/process/metrics.ts'
import { createReconciliationWriter } from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import { findEarlierEvents } from '#shared/io/telemetry/session-events-store.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { createProver } from '#shared/io/tenants/directory/proofs.ts'
import { createRiskFeatureStore } from '#shared/io/velocity/risk-features.ts'
import { readScorerConfig, toTelemetryKeys } from './config.ts'
import { type DecideBatchDeps, decideBatch } from './decide/decide-batch.ts'
import {
  type QuarantineDeps,
  quarantineUndecided,
  quarantineUnstored,
} from './decide/quarantine.ts'
import { createScorerObserver, createShadowObserver, type ScorerObserver } from './metrics.ts'
import { createShadowDecisions, type ShadowDecisions } from './shadow/shadow-decisions.ts'
import { createShadowVersions } from './shadow/shadow-versions.ts'
import { createDecodedMessages, type DecodedMessages } from './store/decoded-messages.ts'
import { type StoreBatchDeps, storeBatch } from './store/store-batch.ts'
import { startStreamTrimmer } from './store/trim-stream.ts'

/**
 * An insert makes a part in every table, which costs ClickHouse much the same however few its rows.
 * So inserts are few where little comes: at 10 events/s (20 KB/s) one each 0.67 s, at 100/s one
 * each 0.5 s, at 2,000/s and more one each 180 to 300 ms. The pause and the insert together stay
 * below the second in which an event must be visible. Where inserts take long, as on busy cores,
 * fewer of them make everything sooner.
 *
 * 16 MB are about 8,000 events, whose risk features are loaded at once: in a backlog an event then
 * takes ClickHouse a third less CPU than in batches of 8 MB; 24 MB gain nothing more and take
 * 50 MB of memory. Where messages hold a single event, as many as one edge at a low rate makes,
 * 2,048 of them are 4 MB: risk features cost half as much per event as in batches of 512.
 */
const storeLimits = {
  batchMessagesMax: 2_048,
  batchBytesMax: 16 * 1024 * 1024,
  batchIntervalMs: 180,
  batchIntervalMaxMs: 300,
  linger: { maxMs: 700, halfBytes: 256 * 1024 },
}
/**
 * Deciding follows storing: as soon as something is stored, but not for every other scorer's bit.
 */
const decideLimits = {
  batchMessagesMax: storeLimits.batchMessagesMax,
  batchBytesMax: storeLimits.batchBytesMax,
  batchIntervalMs: 50,
  batchIntervalMaxMs: 50,
}
/** Message bytes of which deciding's part is kept from storing on: three full batches' worth. */
const decodedBytesMax = 48 * 1024 * 1024

async function main(): Promise<void> {
  const config = readScorerConfig(process.env)
  const log = createLog('scorer', config.LOG_LEVEL)
  const lifecycle = createLifecycle(log, config.PARENT_PID)
  const metrics = createMetrics('scorer')
  const postgres = createPostgres(config.POSTGRES_URL, { role: 'scorer', log, metrics })
  lifecycle.onStop('postgres', postgres.close)
  const clickhouse = createClickhouse(config.CLICKHOUSE_URL, { name: 'scorer' })
  lifecycle.onStop('clickhouse', () => clickhouse.close())
  const reporter = createFaultReporter('ClickHouse', log)
  const checkEngine = () => checkClickhouse(clickhouse, reporter)
  // Why one fails is said at start, not only when somebody asks.
  void postgres.checkReady()
  void checkEngine()

  const link = openNats(toNatsSettings(config), 'scorer', log)
  lifecycle.onStop('nats', link.close)
  let fault: () => string | null = () => null
  let streamWarning: ReadyCheck = () => null
  const url = await serveInternally({
    lifecycle,
    log,
    metrics,
    address: config.SCORER_LISTEN,
    readyChecks: {
      nats: () => link.fault() ?? fault(),
      clickhouse: checkEngine,
      postgres: postgres.checkReady,
    },
    warnings: { stream: () => (link.fault() === null ? streamWarning() : null) },
  })
  log.info({ url }, 'listening')

  const connected = await link.opened
  const observe = createScorerObserver(metrics, () => performance.now())
  const prover = createProver(toTelemetryKeys(config))
  const messages = createDecodedMessages(decodedBytesMax, ({ data, proof }) =>
    prover.isProven(proof, [], data),
  )
  const storeDeadLetters = createDeadLetters({
    nats: connected,
    nowMs: () => performance.now(),
    onLost: observe.deadLetterLost,
  })
  const quarantineDeps: QuarantineDeps = {
    messages,
    storeDeadLetters,
    observe,
    wallMs: Date.now,
    reconciliation: createReconciliationWriter(clickhouse),
  }
  const decide = createDecideDeps({
    messages,
    clickhouse,
    postgres,
    observe,
    nats: connected,
    shadow: createShadow(
      { clickhouse, postgres, observe, log, metrics },
      config.SHADOW_HOLD_MAX_MS,
    ),
  })
  const common = { nats: connected, log, metrics }
  const deciding = consume({
    ...common,
    durable: deciderConsumer,
    limits: decideLimits,
    readyUpTo: () => readStoredWatermark(connected),
    quarantine: (message, error) =>
      quarantineUndecided(message, error, { ...quarantineDeps, decide }),
    handle: (batch) => decideBatch(batch, decide),
  })
  const storing = consume({
    ...common,
    durable: scorerConsumer,
    quarantine: (message, error) => quarantineUnstored(message, error, quarantineDeps),
    limits: storeLimits,
    acknowledged: deciding.wake,
    handle: createStoring({ messages, clickhouse, storeDeadLetters, observe }),
  })
  fault = () => storing.fault() ?? deciding.fault()
  observeStreams(connected, metrics)
  const trimmer = startStreamTrimmer(common)
  streamWarning = trimmer.warning
  lifecycle.onStop('trimmer', trimmer.stop)
  // Storing ends first, so that what it has in hand is decided here when there is time.
  lifecycle.onStop('deciding', deciding.stop)
  lifecycle.onStop('storing', storing.stop)
}

type Shared = {
  messages: DecodedMessages
  clickhouse: Clickhouse
  observe: ScorerObserver
}

function createStoring({
  clickhouse,
  ...shared
}: Shared & Pick<StoreBatchDeps, 'storeDeadLetters'>) {
  const deps: StoreBatchDeps = {
    ...shared,
    telemetry: createTelemetryStore(clickhouse),
    reconciliation: createReconciliationWriter(clickhouse),
    wallMs: Date.now,
  }
  return (batch: readonly ConsumedMessage[]) => storeBatch(batch, deps)
}

function createDecideDeps(
  shared: Shared & { nats: Nats; postgres: Postgres; shadow: ShadowDecisions },
): DecideBatchDeps {
  const { messages, clickhouse, postgres, nats, observe, shadow } = shared
  return {
    messages,
    observe,
    shadow,
    reconciliation: createReconciliationWriter(clickhouse),
    loadRiskFeatures: createRiskFeatureStore(clickhouse).loadRiskFeatures,
    findPolicy: createPolicyDocuments(postgres).findPolicy,
    readDecidedWatermark: () => readDecidedWatermark(nats),
    findEarlierEvents: (question) => findEarlierEvents(clickhouse, question),
    findUnraised: (candidates) => findUnraised(postgres, candidates),
    raiseAlerts: (candidates) => raiseAlerts(postgres, candidates),
    publishHints: (raised) => publishDeliveryHints(nats, raised, observe.hintFailed),
  }
}

function createShadow(
  shared: Omit<Shared, 'messages'> & { postgres: Postgres; log: Log; metrics: Metrics },
  delayMaxMs: number,
): ShadowDecisions {
  const { clickhouse, postgres, observe, log, metrics } = shared
  const nowMs = () => performance.now()
  return createShadowDecisions({
    versions: createShadowVersions(postgres, nowMs),
    findPolicy: createPolicyDocuments(postgres).findPolicy,
    loadRiskFeatures: createRiskFeatureStore(clickhouse).loadRiskFeatures,
    insertDecisions: createShadowDecisionWriter(clickhouse).insertDecisions,
    observe: createShadowObserver(metrics, observe.timed),
    log,
    nowMs,
    delayMaxMs,
  })
}

run(main)
