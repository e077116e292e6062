/**
 * The scorer process: consumes accepted events from JetStream, writes them to ClickHouse, decides
 * which raise an alert, and writes alerts with their deliveries to Postgres. Several scorers share
 * the work. `consumers.ts` builds the two stages.
 */
import { clickhousePrivileges } from '#shared/core/permissions/table-privileges.ts'
import { listTelemetryStreams } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import { createClickhouse, databaseOf } from '#shared/io/clickhouse/clickhouse.ts'
import { serveInternally } from '#shared/io/http/internal-server.ts'
import { createClickhouseCheck } from '#shared/io/migrations/clickhouse-check.ts'
import { createPostgresCheck } from '#shared/io/migrations/postgres-check.ts'
import { createSchemaVersions } from '#shared/io/migrations/schema-versions.ts'
import { openNats } from '#shared/io/nats/connection.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { toNatsSettings, toShardUrls } from '#shared/io/process/config.ts'
import { createLifecycle, run } from '#shared/io/process/lifecycle.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { findStreamFault } from '#shared/io/tenants/tenant-streams.ts'
import { openTracing } from '#shared/io/tracing/open-tracing.ts'
import { readScorerConfig, toTelemetryKeys } from './config.ts'
import { type StreamConsumers, startConsumers } from './consumers.ts'

async function main(): Promise<void> {
  const config = readScorerConfig(process.env)
  const log = createLog('scorer', config.LOG_LEVEL)
  const lifecycle = createLifecycle(log, { parentPid: config.PARENT_PID })
  const metrics = createMetrics('scorer')
  const tracing = await openTracing(config, { service: 'scorer', lifecycle, log, metrics })
  const postgres = createPostgres(config.POSTGRES_URL, { role: 'scorer', log, metrics })
  lifecycle.onStop('postgres', postgres.close)
  const clickhouse = createClickhouse(config.CLICKHOUSE_URL, {
    name: 'scorer',
    shardUrls: toShardUrls(config),
  })
  lifecycle.onStop('clickhouse', () => clickhouse.close())
  const schemas = createSchemaVersions(metrics)
  const { writes: checkPostgres } = createPostgresCheck(postgres, { schemas, log })
  const checkEngine = createClickhouseCheck({
    clickhouse,
    database: databaseOf(config.CLICKHOUSE_URL),
    privileges: clickhousePrivileges.scorer,
    schemas,
    log,
  })
  // Log failures at start, before the first readiness check.
  void checkPostgres()
  void checkEngine()

  const link = openNats(toNatsSettings(config), 'scorer', log)
  lifecycle.onStop('nats', link.close)
  let consumers: StreamConsumers[] = []
  const url = await serveInternally({
    lifecycle,
    log,
    metrics,
    address: config.SCORER_LISTEN,
    readyChecks: {
      nats: () => link.fault() ?? findConsumerFault(consumers),
      clickhouse: checkEngine,
      postgres: checkPostgres,
      // While Postgres is away, its own check says so.
      streams: () => findStreamFault(postgres, config.TELEMETRY_STREAMS).catch(() => null),
    },
    warnings: Object.fromEntries(
      listTelemetryStreams(config.TELEMETRY_STREAMS).map(({ number, suffix }) => [
        `stream${suffix}`,
        () => (link.fault() === null ? (consumers[number - 1]?.warning() ?? null) : null),
      ]),
    ),
  })
  log.info({ url }, 'listening')

  consumers = startConsumers({
    nats: await link.opened,
    clickhouse,
    postgres,
    telemetryKeys: toTelemetryKeys(config),
    shadowDelayMaxMs: config.SHADOW_HOLD_MAX_MS,
    tracing,
    log,
    metrics,
  })
  const stopAll = (stage: 'background' | 'deciding' | 'storing') => async () => {
    await Promise.all(consumers.map((ofStream) => ofStream[stage].stop()))
  }
  lifecycle.onStop('background', stopAll('background'))
  // Storing stops first, so that its last batch can be decided here.
  lifecycle.onStop('deciding', stopAll('deciding'))
  lifecycle.onStop('storing', stopAll('storing'))
}

/** @returns null while the consumers of every stream work, else the reason */
function findConsumerFault(consumers: readonly StreamConsumers[]): string | null {
  const faults = consumers.map(({ storing, deciding }) => storing.fault() ?? deciding.fault())
  return faults.find((fault) => fault !== null) ?? null
}

run(main)
