/**
 * The connections to Postgres, ClickHouse and NATS of one thread of the console; a stop closes
 * them. Pages and jobs have their own, so that neither waits for the other.
 */
import { leaseConnectionsMax, workLeaseMs } from '#shared/core/base/limits/tenants.ts'
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import { type Clickhouse, createClickhouse, databaseOf } from '#shared/io/clickhouse/clickhouse.ts'
import { readsNewForm } from '#shared/io/keys/key-form.ts'
import type { Leases } from '#shared/io/leases/leases.ts'
import { type Nats, type NatsLink, openNats } from '#shared/io/nats/connection.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { toNatsSettings, toShardUrls } from '#shared/io/process/config.ts'
import { createFaultReporter } from '#shared/io/process/connect-faults.ts'
import type { StopSteps } from '#shared/io/process/lifecycle.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import {
  createReconciliationStore,
  type ReconciliationStore,
} from '#shared/io/reconciliation/reconciliation-store.ts'
import type { ConsoleConfig } from './config.ts'

/** A mutation rewrites parts of any size, and continues when its client has gone. */
export const mutationMaxMs = 30 * 60 * 1000

/** ClickHouse ends a slice of a backtest after 300 seconds. */
export const sliceMaxMs = 310_000

export type Connections = {
  postgres: Postgres
  /** Of changes of tenants, erasures, backtests and the jobs. */
  leases: Leases
  clickhouse: Clickhouse
  /** For statements that take longer than a query of an operator. */
  longClickhouse: Clickhouse
  reconciliation: ReconciliationStore
  /** Null before the first connection. */
  findNats: () => Nats | null
  natsFault: NatsLink['fault']
}

export type ConnectionOptions = {
  config: ConsoleConfig
  /** For the servers' lists of connections and metrics: `console` or `console jobs`. */
  name: string
  /** The limit of a statement on `longClickhouse`, in ms. */
  longMaxMs: number
  steps: StopSteps
  log: Log
  metrics: Metrics
}

/** Opens the connections without waiting for any server. */
export function openConnections(options: ConnectionOptions): Connections {
  const { config, name, longMaxMs, steps, log, metrics } = options
  const reporter = createFaultReporter('Postgres', log)
  const postgres = createPostgres(config.POSTGRES_URL, {
    role: name,
    nameEnd: readsNewForm,
    log,
    reporter,
    metrics,
  })
  steps.onStop('postgres', postgres.close)
  const renewals = createPostgres(config.POSTGRES_URL, {
    role: `${name} leases`,
    nameEnd: readsNewForm,
    log,
    reporter,
    metrics,
    connectionsMax: leaseConnectionsMax,
    // A renewal that takes longer is too late.
    statementTimeoutMs: workLeaseMs / 2,
    lockTimeoutMs: workLeaseMs / 8,
  })
  steps.onStop('leases', renewals.close)

  const shardUrls = toShardUrls(config)
  const openClickhouse = (more: { name: string; requestTimeoutMs?: number }) => {
    const client = createClickhouse(config.CLICKHOUSE_URL, { ...more, shardUrls })
    steps.onStop(`clickhouse of ${more.name}`, () => client.close())
    return client
  }
  const clickhouse = openClickhouse({ name })
  const longClickhouse = openClickhouse({ name: `${name}, long`, requestTimeoutMs: longMaxMs })
  const analytics = toAnalyticsDatabase(databaseOf(config.CLICKHOUSE_URL))

  // Reading and suspending work without NATS, so the start does not wait for it.
  const link = openNats(toNatsSettings(config), 'console', log)
  steps.onStop('nats', link.close)
  return {
    postgres,
    leases: { renewals, work: postgres },
    clickhouse,
    longClickhouse,
    reconciliation: createReconciliationStore(clickhouse, analytics),
    findNats: link.find,
    natsFault: link.fault,
  }
}
