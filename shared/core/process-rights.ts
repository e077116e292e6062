/**
 * What each process may do in each store: the one table from which `npm start`, compose and the
 * cluster configuration make users and grants. A process gets what it needs and nothing more; null
 * means that it does not connect at all. Pure data, no I/O.
 */
export const processNames = ['ingest', 'scorer', 'api', 'delivery', 'console', 'migrate'] as const
export type ProcessName = (typeof processNames)[number]

/** Subjects of NATS, with `*` and `>`. */
export type NatsRights = { publish: readonly string[]; subscribe: readonly string[] }

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
  ingest: { nats: { publish: [], subscribe: [] }, postgres: null, clickhouse: null },
  scorer: { nats: { publish: [], subscribe: [] }, postgres: {}, clickhouse: {} },
  api: { nats: null, postgres: {}, clickhouse: {} },
  delivery: { nats: { publish: [], subscribe: [] }, postgres: {}, clickhouse: null },
  console: { nats: { publish: [], subscribe: [] }, postgres: {}, clickhouse: {} },
  migrate: { nats: { publish: [], subscribe: [] }, postgres: 'owner', clickhouse: 'owner' },
}
