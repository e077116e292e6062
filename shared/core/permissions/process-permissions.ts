/**
 * The permissions of each process in each store. `npm start`, compose and the cluster configuration
 * make users and grants from this table. A process gets only what it needs; null: it does not
 * connect.
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

/** Environment variables with secrets, apart from addresses. */
export const secretVariables = [
  ...['MASTER_KEY', 'MASTER_KEY_PREVIOUS', 'TELEMETRY_KEY', 'TELEMETRY_KEY_PREVIOUS'],
  'ADMIN_TOKEN',
] as const

type ProcessPermissions = {
  nats: NatsPermissions | null
  postgres: 'owner' | TablePrivileges | null
  /** What an owner needs is in `toClickhouseOwnerGrants`. */
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
