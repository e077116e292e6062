/**
 * The permissions of each process in each store. `npm start`, compose and the cluster configuration
 * make users and grants from this table. A process gets only what it needs; null: it does not
 * connect.
 */
import { type NatsPermissions, natsPermissions } from './nats-permissions.ts'
import { derivedKeys, type KeyVariable, toKeyVariables, toPrevious } from './process-keys.ts'
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
export const secretVariables: readonly string[] = [
  ...(['MASTER_KEY', ...Object.keys(derivedKeys)] as KeyVariable[]).flatMap((key) => [
    key,
    toPrevious(key),
  ]),
  'ADMIN_TOKEN',
]

type ProcessPermissions = {
  nats: NatsPermissions | null
  postgres: 'owner' | TablePrivileges | null
  /** What an owner needs is in `toClickhouseOwnerGrants`. */
  clickhouse: 'owner' | TablePrivileges | null
  secrets: readonly string[]
}

export const processPermissions: Readonly<Record<ProcessName, ProcessPermissions>> = {
  ingest: {
    nats: natsPermissions.ingest,
    postgres: null,
    clickhouse: null,
    secrets: toKeyVariables('ingest'),
  },
  scorer: {
    nats: natsPermissions.scorer,
    postgres: postgresPrivileges.scorer,
    clickhouse: clickhousePrivileges.scorer,
    secrets: toKeyVariables('scorer'),
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
    secrets: toKeyVariables('delivery'),
  },
  console: {
    nats: natsPermissions.console,
    postgres: postgresPrivileges.console,
    clickhouse: clickhousePrivileges.console,
    secrets: [...toKeyVariables('console'), 'ADMIN_TOKEN'],
  },
  migrate: { nats: natsPermissions.migrate, postgres: 'owner', clickhouse: 'owner', secrets: [] },
}
