/**
 * The api process: reads alerts and policies from Postgres and device history from ClickHouse for
 * tenants. It starts without either, and serves the routes whose database is available.
 */
import { clickhousePrivileges } from '#shared/core/permissions/table-privileges.ts'
import { createAlertStore } from '#shared/io/alerts/alert-store.ts'
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import { createClickhouse, databaseOf } from '#shared/io/clickhouse/clickhouse.ts'
import { createHistoryStore } from '#shared/io/devices/history-store.ts'
import { createUserStore } from '#shared/io/devices/user-store.ts'
import { closeHttp } from '#shared/io/http/close-http.ts'
import { listen } from '#shared/io/http/http-server.ts'
import { answerOnce } from '#shared/io/http/idempotent-answers.ts'
import { serveInternally } from '#shared/io/http/internal-server.ts'
import { createPhoneAlerts } from '#shared/io/identity/phone-alerts.ts'
import { createPhoneCorrections } from '#shared/io/identity/phone-corrections.ts'
import { createPhoneStore } from '#shared/io/identity/phone-store.ts'
import { createKeyedLists } from '#shared/io/lists/change-lists.ts'
import { createClickhouseCheck } from '#shared/io/migrations/clickhouse-check.ts'
import { createPostgresCheck } from '#shared/io/migrations/postgres-check.ts'
import { processSessions } from '#shared/io/migrations/process-sessions.ts'
import { createSchemaVersions } from '#shared/io/migrations/schema-versions.ts'
import { createKeyedLabels } from '#shared/io/outcomes/change-labels.ts'
import { createScoreStore } from '#shared/io/outcomes/score-store.ts'
import { createCurrentPolicyStore } from '#shared/io/policies/current-policy-store.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { toShardUrls } from '#shared/io/process/config.ts'
import { createLifecycle, run } from '#shared/io/process/lifecycle.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createReconciliationStore } from '#shared/io/reconciliation/reconciliation-store.ts'
import { createEventListStore } from '#shared/io/telemetry/event-list-store.ts'
import { createEventStore } from '#shared/io/telemetry/event-store.ts'
import { createTenantStore } from '#shared/io/tenants/tenant-store.ts'
import { openTracing } from '#shared/io/tracing/open-tracing.ts'
import { readVerdictKeySet } from '#shared/io/verdicts/verdict-key-store.ts'
import { createApiApp } from './app.ts'
import { readApiConfig } from './config.ts'

const clickhouseTimeoutMs = 5_000
const clickhouseConnectionsMax = 48
/** How long a stop waits for requests: longer than the database timeouts. */
const unfinishedMs = 6_500

const monotonicMs = () => performance.now()

async function main(): Promise<void> {
  const config = readApiConfig(process.env)
  const log = createLog('api', config.LOG_LEVEL)
  const metrics = createMetrics('api')
  const lifecycle = createLifecycle(log, {
    parentPid: config.PARENT_PID,
    stopDelayMs: config.STOP_DELAY_MS,
  })
  const tracing = await openTracing(config, { service: 'api', lifecycle, log, metrics })
  const postgres = createPostgres(config.POSTGRES_URL, {
    role: 'api',
    log,
    metrics,
    ...processSessions.api,
  })
  lifecycle.onStop('postgres', postgres.close)
  const clickhouse = createClickhouse(config.CLICKHOUSE_URL, {
    name: 'api',
    shardUrls: toShardUrls(config),
    requestTimeoutMs: clickhouseTimeoutMs,
    connectionsMax: clickhouseConnectionsMax,
  })
  lifecycle.onStop('clickhouse', () => clickhouse.close())
  const isSharded = clickhouse.shards.length > 0
  const schemas = createSchemaVersions(metrics)
  const checkPostgres = createPostgresCheck(postgres, { schemas, log })
  const checkEngine = createClickhouseCheck({
    clickhouse,
    database: databaseOf(config.CLICKHOUSE_URL),
    privileges: clickhousePrivileges.api,
    schemas,
    log,
  })
  // Log failures at start, before the first readiness check.
  void checkPostgres.reads()
  void checkEngine()
  const internalUrl = await serveInternally({
    lifecycle,
    log,
    metrics,
    address: config.API_INTERNAL_LISTEN,
    readyChecks: {
      postgres: checkPostgres.reads,
      ...(isSharded ? {} : { clickhouse: checkEngine }),
    },
    // Reads work on a standby; dispositions and list entries do not. Without a shard the devices of
    // the others are still answered, so a proxy must not take this process away.
    warnings: {
      postgres: checkPostgres.writes,
      ...(isSharded ? { clickhouse: checkEngine } : {}),
    },
  })
  const app = await createApiApp(
    {
      tenants: createTenantStore(postgres),
      alerts: createAlertStore(postgres),
      answerOnce: (call, work) => answerOnce(postgres, call, work),
      history: createHistoryStore(clickhouse),
      users: createUserStore(clickhouse),
      phones: {
        ...createPhoneStore(clickhouse, createPhoneCorrections(postgres)),
        ...createPhoneAlerts(postgres),
      },
      events: {
        ...createEventStore(clickhouse),
        ...createEventListStore(clickhouse, { nowMs: Date.now, monotonicMs }),
      },
      policies: createCurrentPolicyStore(postgres),
      lists: createKeyedLists(postgres, Date.now),
      labels: createKeyedLabels(postgres, Date.now),
      countScores: createScoreStore(clickhouse).countScores,
      reconciliation: createReconciliationStore(
        clickhouse,
        toAnalyticsDatabase(databaseOf(config.CLICKHOUSE_URL)),
      ),
      readVerdictKeys: (nowMs) => readVerdictKeySet(postgres, nowMs),
      tracing,
      publicUrls: { api: config.PUBLIC_API_URL, ingest: config.PUBLIC_INGEST_URL },
      nowMs: Date.now,
      monotonicMs,
    },
    { log, metrics, trustedProxies: config.TRUSTED_PROXIES, stopping: lifecycle.stopping },
  )
  lifecycle.onStop('http', () => closeHttp(app, unfinishedMs))
  const url = await listen(app, config.API_LISTEN, config.REUSE_PORT)
  log.info({ url, internal_url: internalUrl }, 'listening')
}

run(main)
