/**
 * What each process may do in each store: the one table from which `npm start`, compose and the
 * cluster configuration make users and grants. A process gets what it needs and nothing more; null
 * means that it does not connect at all. Pure data, no I/O.
 */
import { type NatsRights, natsRights } from './nats-rights.ts'
import { clickhouseRights, postgresRights, type TableRights } from './store-rights.ts'

export const processNames = ['ingest', 'scorer', 'api', 'delivery', 'console', 'migrate'] as const
/** The stores that a process may connect to. */
export type StoreName = 'nats' | 'postgres' | 'clickhouse'

export type ProcessName = (typeof processNames)[number]

/** Secrets that are not part of an address, by the variables that they come in. */
export const secretVariables = [
  ...['MASTER_KEY', 'MASTER_KEY_PREVIOUS', 'TELEMETRY_KEY', 'TELEMETRY_KEY_PREVIOUS'],
  'ADMIN_TOKEN',
] as const

export type ProcessRights = {
  nats: NatsRights | null
  postgres: 'owner' | TableRights | null
  clickhouse: 'owner' | TableRights | null
  secrets: readonly string[]
}

const masterKeys = ['MASTER_KEY', 'MASTER_KEY_PREVIOUS'] as const

export const processRights: Readonly<Record<ProcessName, ProcessRights>> = {
  ingest: { nats: natsRights.ingest, postgres: null, clickhouse: null, secrets: masterKeys },
  scorer: {
    nats: natsRights.scorer,
    postgres: postgresRights.scorer,
    clickhouse: clickhouseRights.scorer,
    secrets: ['TELEMETRY_KEY', 'TELEMETRY_KEY_PREVIOUS'],
  },
  api: {
    nats: null,
    postgres: postgresRights.api,
    clickhouse: clickhouseRights.api,
    secrets: [],
  },
  delivery: {
    nats: natsRights.delivery,
    postgres: postgresRights.delivery,
    clickhouse: null,
    secrets: masterKeys,
  },
  console: {
    nats: natsRights.console,
    postgres: postgresRights.console,
    clickhouse: clickhouseRights.console,
    secrets: [...masterKeys, 'ADMIN_TOKEN'],
  },
  migrate: { nats: natsRights.migrate, postgres: 'owner', clickhouse: 'owner', secrets: [] },
}
