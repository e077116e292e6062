/**
 * The connections to Postgres, ClickHouse and NATS of one thread of the console; a stop closes
 * them. Pages and jobs have their own, so that neither waits for the other.
 */
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import { type Clickhouse, createClickhouse, databaseOf } from '#shared/io/clickhouse/clickhouse.ts'
import { readsNewForm } from '#shared/io/keys/key-form.ts'
import { type Nats, type NatsLink, openNats } from '#shared/io/nats/connection.ts'
import type { Locks } from '#shared/io/postgres/named-lock-store.ts'
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
import { createLockPools } from './tenants/lock-pools.ts'

/** A mutation rewrites parts of any size, and continues when its client has gone. */
export const mutationMaxMs = 30 * 60 * 1000

/** ClickHouse ends a slice of a backtest after 300 seconds. */
export const sliceMaxMs = 310_000

export type Connections = {
  postgres: Postgres
  /** Locks of rotations and other changes of a tenant. */
  changeLocks: Locks
  /** Locks of erasures, backtests and the jobs. */
  jobLocks: Locks
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
  const locks = createLockPools(config.POSTGRES_URL, {
    name,
    work: postgres,
    log,
    reporter,
    metrics,
  })
  steps.onStop('locks', locks.close)

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
    changeLocks: locks.changes,
    jobLocks: locks.jobs,
    clickhouse,
    longClickhouse,
    reconciliation: createReconciliationStore(clickhouse, analytics),
    findNats: link.find,
    natsFault: link.fault,
  }
}
