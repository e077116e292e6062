/**
 * What each process may do in each store: the one table from which `npm start`, compose and the
 * cluster configuration make users and grants. A process gets what it needs and nothing more; null
 * means that it does not connect at all. Pure data, no I/O.
 */
import { type NatsRights, natsRights } from './nats-rights.ts'

export const processNames = ['ingest', 'scorer', 'api', 'delivery', 'console', 'migrate'] as const
export type ProcessName = (typeof processNames)[number]

/** Privileges per table, such as `{ alerts: ['select', 'insert'] }`; `'owner'` may do everything. */
export type PostgresRights = 'owner' | Readonly<Record<string, readonly string[]>>

/** Privileges per table; `'owner'` may do everything. */
export type ClickhouseRights = 'owner' | Readonly<Record<string, readonly string[]>>

export type ProcessRights = {
  nats: NatsRights | null
  postgres: PostgresRights | null
  clickhouse: ClickhouseRights | null
}

export const processRights: Readonly<Record<ProcessName, ProcessRights>> = {
  ingest: { nats: natsRights.ingest, postgres: null, clickhouse: null },
  scorer: { nats: natsRights.scorer, postgres: {}, clickhouse: {} },
  api: { nats: null, postgres: {}, clickhouse: {} },
  delivery: { nats: natsRights.delivery, postgres: {}, clickhouse: null },
  console: { nats: natsRights.console, postgres: {}, clickhouse: {} },
  migrate: { nats: natsRights.migrate, postgres: 'owner', clickhouse: 'owner' },
}
