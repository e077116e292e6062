/**
 * The console process: connects, starts the thread of the jobs, serves the admin API, and drains.
 */

import { clickhousePrivileges } from '#shared/core/permissions/table-privileges.ts'
import { startStatusFile } from '#shared/io/attestation/status-file.ts'
import { databaseOf } from '#shared/io/clickhouse/clickhouse.ts'
import { closeHttp } from '#shared/io/http/close-http.ts'
import { listen, toListenUrl } from '#shared/io/http/http-server.ts'
import { serveInternally } from '#shared/io/http/internal-server.ts'
import { createSealer, type Sealer, toMasterKeys } from '#shared/io/keys/console-keys.ts'
import { createKnownForm } from '#shared/io/keys/key-form.ts'
import { createClickhouseCheck } from '#shared/io/migrations/clickhouse-check.ts'
import { createPostgresCheck } from '#shared/io/migrations/postgres-check.ts'
import { createSchemaVersions } from '#shared/io/migrations/schema-versions.ts'
import { createNetworkData } from '#shared/io/network/network-data.ts'
import { type Postgres, PostgresUnavailableError } from '#shared/io/postgres/postgres.ts'
import type { Listen } from '#shared/io/process/config.ts'
import { createLifecycle, run } from '#shared/io/process/lifecycle.ts'
import { createLog, type Log } from '#shared/io/process/log.ts'
import { createMetrics, joinMetrics } from '#shared/io/process/metrics.ts'
import { findStreamFault } from '#shared/io/tenants/tenant-streams.ts'
import { createConsoleApp } from './app.ts'
import { readConsoleConfig } from './config.ts'
import { openConnections, sliceMaxMs } from './connections.ts'
import { createConsoleDeps } from './console-deps.ts'
import { startJobsThread } from './jobs/jobs-thread.ts'
import { requireMasterKey } from './keys/require-master-key.ts'
import { createBacktests } from './policies/backtest.ts'
import { createSuggestions } from './policies/suggestions.ts'

/**
 * How long a stop waits for requests and jobs: a rotation waits for edges; others end sooner.
 */
const unfinishedMs = 6_500

async function main(): Promise<void> {
  const config = readConsoleConfig(process.env)
  const log = createLog('console', config.LOG_LEVEL)
  const lifecycle = createLifecycle(log, {
    parentPid: config.PARENT_PID,
    stopDelayMs: config.STOP_DELAY_MS,
  })
  const metrics = createMetrics('console')
  const connections = openConnections({
    config,
    steps: lifecycle,
    log,
    metrics,
    name: 'console',
    longMaxMs: sliceMaxMs,
  })
  const { postgres } = connections
  const keyForm = createKnownForm(postgres)
  const sealer = createSealer(toMasterKeys(config), keyForm.read)
  const schemas = createSchemaVersions(metrics)
  const checkPostgres = createPostgresCheck(postgres, { schemas, log })
  const checkEngine = createClickhouseCheck({
    clickhouse: connections.clickhouse,
    database: databaseOf(config.CLICKHOUSE_URL),
    privileges: clickhousePrivileges.console,
    schemas,
    log,
  })
  // Only operators query ClickHouse, so the start does not wait; a failure is logged at once.
  void checkEngine()
  await checkMasterKey(postgres, sealer, log)
  lifecycle.onStop('key form', keyForm.start(log).stop)
  const networkData = createNetworkData({
    folder: config.NETWORK_DATA ?? null,
    isCheckOnly: true,
    log,
    metrics,
    wallMs: Date.now,
  })
  lifecycle.onStop('network data', networkData.start().stop)
  const jobs = startJobsThread({ config, log, metrics })
  const status = startStatusFile(config, { lifecycle, log, metrics, wallMs: Date.now })
  const internalUrl = await serveInternally({
    lifecycle,
    log,
    metrics: { ...metrics, registry: joinMetrics(metrics.registry, jobs.readMetrics) },
    address: config.CONSOLE_INTERNAL_LISTEN,
    readyChecks: { postgres: checkPostgres.writes, nats: connections.natsFault },
    // Most pages work without the jobs and ClickHouse, so a proxy must not take them away.
    warnings: {
      jobs: jobs.checkReady,
      clickhouse: checkEngine,
      recovery: jobs.checkRecovery,
      attestation_status: status.warning,
      network_data: networkData.warning,
      // While Postgres is away, its own check says so.
      streams: () => findStreamFault(postgres, config.TELEMETRY_STREAMS).catch(() => null),
    },
  })
  const shared = { log, metrics, nowMs: () => performance.now(), wallMs: Date.now }
  const backtests = createBacktests({
    postgres,
    leases: connections.leases,
    clickhouse: connections.longClickhouse,
    ...shared,
  })
  const suggestions = createSuggestions({
    postgres,
    leases: connections.leases,
    clickhouse: connections.longClickhouse,
    ...shared,
  })
  let listening = toBrowserUrl(config.CONSOLE_LISTEN)
  const publicUrl = () => config.PUBLIC_URL ?? listening
  const revokedSerials = status.revoked
  const stores = { connections, sealer, keyForm, backtests, suggestions }
  const parts = { config, publicUrl, revokedSerials, networkData, ...stores, ...shared }
  const app = await createConsoleApp(createConsoleDeps(parts), {
    log,
    metrics,
    trustedProxies: config.TRUSTED_PROXIES,
    stopping: lifecycle.stopping,
  })
  lifecycle.onStop('http and jobs', async () => {
    await Promise.all([closeHttp(app, unfinishedMs), jobs.stop(unfinishedMs)])
  })
  lifecycle.onStop('backtests', backtests.stop)
  lifecycle.onStop('suggestions', suggestions.stop)
  const url = await listen(app, config.CONSOLE_LISTEN)
  listening = toBrowserUrl({ ...config.CONSOLE_LISTEN, port: Number(new URL(url).port) })
  log.info({ url, public_url: publicUrl(), internal_url: internalUrl }, 'listening')
}

/** The default of PUBLIC_URL. A browser reaches an address of all interfaces as localhost. */
const toBrowserUrl = ({ host, port }: Listen): string =>
  toListenUrl({ host: ['0.0.0.0', '::'].includes(host) ? 'localhost' : host, port })

/** The start goes on while Postgres is away. @throws ConfigError when MASTER_KEY is wrong */
async function checkMasterKey(postgres: Postgres, sealer: Sealer, log: Log): Promise<void> {
  try {
    await requireMasterKey(postgres, sealer)
  } catch (error) {
    if (!(error instanceof PostgresUnavailableError)) throw error
    log.warn('Postgres does not answer yet, so MASTER_KEY was not compared with what is stored')
  }
}

run(main)
