/**
 * The scorer process: takes accepted events from JetStream, writes them to ClickHouse, decides
 * alerts and writes those to Postgres with their deliveries. Several of it share the work.
 */
import { scorerConsumer } from '#shared/core/messages.ts'
import { createActivityStore } from '#shared/io/activity-store.ts'
import { raiseAlerts } from '#shared/io/alert-raising-store.ts'
import { checkClickhouse, createClickhouse } from '#shared/io/clickhouse.ts'
import { consume } from '#shared/io/consume.ts'
import { storeDeadLetters } from '#shared/io/dead-letters.ts'
import { publishDeliveryHints } from '#shared/io/delivery-hint-publisher.ts'
import { createHttpServer, listen } from '#shared/io/http-server.ts'
import { findLaterEvents, type LaterSubject } from '#shared/io/later-events-store.ts'
import { createLifecycle, run } from '#shared/io/lifecycle.ts'
import { createLog } from '#shared/io/log.ts'
import { createMetrics } from '#shared/io/metrics.ts'
import { connectNats, type Nats } from '#shared/io/nats.ts'
import { createPolicyDocuments } from '#shared/io/policy-document-store.ts'
import { createPostgres } from '#shared/io/postgres.ts'
import { createTelemetryStore } from '#shared/io/telemetry-store.ts'
import { readScorerConfig } from './config.ts'
import { createScorerObserver } from './observe.ts'
import { scoreBatch } from './score-batch.ts'

/**
 * Five inserts a second at most unless they are full: each makes a part in every table, which costs
 * ClickHouse some 20 ms of CPU however few its rows. It adds a fifth of a second at most to an
 * event's way. 4 MB are about 2,000 events, which is where larger inserts stop being cheaper per
 * row.
 */
const limits = {
  batchMessagesMax: 512,
  batchBytesMax: 4 * 1024 * 1024,
  batchIntervalMs: 200,
  aheadBytesMax: 12 * 1024 * 1024,
}

async function main(): Promise<void> {
  const config = readScorerConfig(process.env)
  const log = createLog('scorer', config.LOG_LEVEL)
  const lifecycle = createLifecycle(log, config.PARENT_PID)
  const metrics = createMetrics('scorer')
  const postgres = createPostgres(config.POSTGRES_URL, { role: 'scorer', log, metrics })
  lifecycle.onStop('postgres', postgres.close)
  const clickhouse = createClickhouse(config.CLICKHOUSE_URL, { name: 'scorer' })
  lifecycle.onStop('clickhouse', () => clickhouse.close())

  let nats: Nats | null = null
  let fault: () => string | null = () => 'is not connected'
  const app = createHttpServer({
    log,
    metrics,
    stopping: lifecycle.stopping,
    readyChecks: {
      nats: () => (nats?.connected() ? fault() : 'is not connected'),
      clickhouse: () => checkClickhouse(clickhouse),
      postgres: postgres.checkReady,
    },
  })
  lifecycle.onStop('http', () => app.close())
  log.info({ url: await listen(app, config.SCORER_LISTEN) }, 'listening')

  const connected = await connectNats(config.NATS_URL, 'scorer', log)
  nats = connected
  lifecycle.onStop('nats', connected.close)
  const observe = createScorerObserver(metrics, () => performance.now())
  const dependencies = {
    telemetry: createTelemetryStore(clickhouse),
    activity: createActivityStore(clickhouse),
    findPolicy: createPolicyDocuments(connected, postgres).findPolicy,
    findLaterEvents: (subjects: readonly LaterSubject[]) => findLaterEvents(clickhouse, subjects),
    raiseAlerts: (drafts: Parameters<typeof raiseAlerts>[1]) =>
      raiseAlerts(postgres, drafts, Date.now),
    publishHints: (raised: Parameters<typeof publishDeliveryHints>[1]) =>
      publishDeliveryHints(connected, raised, observe.hintFailed),
    storeDeadLetters: (letters: Parameters<typeof storeDeadLetters>[1]) =>
      storeDeadLetters(connected, letters, observe.letterLost),
    observe,
    wallMs: Date.now,
  }
  const consumption = consume({
    nats: connected,
    durable: scorerConsumer,
    log,
    metrics,
    limits,
    handle: (messages) => scoreBatch(messages, dependencies),
  })
  fault = consumption.fault
  lifecycle.onStop('consumption', consumption.stop)
}

run(main)
