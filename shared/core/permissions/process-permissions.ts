/**
 * What each process may do in each store: the one table from which `npm start`, compose and the
 * cluster configuration make users and grants. A process gets what it needs and nothing more; null
 * means that it does not connect at all. Pure data, no I/O.
 */
import { type NatsPermissions, natsPermissions } from './nats-permissions.ts'
import {
  clickhousePrivileges,
  postgresPrivileges,
  type TablePrivileges,
} from './table-privileges.ts'

export const processNames = ['ingest', 'scorer', 'api', 'delivery', 'console', 'migrate'] as const
/** The stores that a process may connect to. */
export type StoreName = 'nats' | 'postgres' | 'clickhouse'

export type ProcessName = (typeof processNames)[number]

/** Secrets that are not part of an address, by the variables that they come in. */
export const secretVariables = [
  ...['MASTER_KEY', 'MASTER_KEY_PREVIOUS', 'TELEMETRY_KEY', 'TELEMETRY_KEY_PREVIOUS'],
  'ADMIN_TOKEN',
] as const

export type ProcessPermissions = {
  nats: NatsPermissions | null
  postgres: 'owner' | TablePrivileges | null
  clickhouse: 'owner' | TablePrivileges | null
  secrets: readonly string[]
}

const masterKeys = ['MASTER_KEY', 'MASTER_KEY_PREVIOUS'] as const

export const processPermissions: Readonly<Record<ProcessName, ProcessPermissions>> = {
  ingest: { nats: natsPermissions.ingest, postgres: null, clickhouse: null, secrets: masterKeys },
  scorer: {
    nats: natsPermissions.scorer,
    postgres: postgresPrivileges.scorer,
    clickhouse: clickhousePrivileges.scorer,
    secrets: ['TELEMETRY_KEY', 'TELEMETRY_KEY_PREVIOUS'],
  },
  api: {
    nats: null,
    postgres: postgresPrivileges.api,
    clickhouse: clickhousePrivileges.api,
    secrets: [],
  },
  delivery: {
    nats: natsPermissions.delivery,
    postgres: postgresPrivileges.delivery,
    clickhouse: null,
    secrets: masterKeys,
  },
  console: {
    nats: natsPermissions.console,
    postgres: postgresPrivileges.console,
    clickhouse: clickhousePrivileges.console,
    secrets: [...masterKeys, 'ADMIN_TOKEN'],
  },
  migrate: { nats: natsPermissions.migrate, postgres: 'owner', clickhouse: 'owner', secrets: [] },
}
