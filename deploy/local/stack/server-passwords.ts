// The users of the processes in the servers of the local stack, with passwords derived from the
// secret of its data folder, so that no others are stored.

import { hash, hkdfSync } from 'node:crypto'

import { toAllDatabase } from '#shared/core/base/shards.ts'
import {
  type ProcessName,
  processNames,
  processPermissions,
  type StoreName,
} from '#shared/core/permissions/process-permissions.ts'
import {
  type TablePrivileges,
  toClickhouseGrants,
} from '#shared/core/permissions/table-privileges.ts'
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import { type NatsUser, natsUserNames } from '../../nats-users.ts'
import type { EngineUser } from '../clickhouse/server-config.ts'
import type { Secrets } from './state-files.ts'

/** A letter first, then digits, because passwords are part of URLs. */
function toPassword(secrets: Secrets, store: StoreName, user: string): string {
  const bytes = hkdfSync('sha256', secrets.master_key, '', `local ${store} password ${user}`, 24)
  return `p${Buffer.from(bytes).toString('hex')}`
}

/** The passwords of the processes that have their own user in a store. */
function toPasswords(
  secrets: Secrets,
  store: 'postgres' | 'clickhouse',
): Partial<Record<ProcessName, string>> {
  const names = processNames.filter((name) => {
    const rights = processPermissions[name][store]
    return rights !== null && rights !== 'owner'
  })
  return Object.fromEntries(names.map((name) => [name, toPassword(secrets, store, name)]))
}

export function natsPasswords(secrets: Secrets): Record<NatsUser, string> {
  const passwords = natsUserNames.map((user) => [user, toPassword(secrets, 'nats', user)])
  return Object.fromEntries(passwords) as Record<NatsUser, string>
}

/** The passwords of the roles that `migrate` creates. */
export const postgresPasswords = (secrets: Secrets) => toPasswords(secrets, 'postgres')

export const clickhousePasswords = (secrets: Secrets) => toPasswords(secrets, 'clickhouse')

/** The processes as users of the embedded engine. */
export function toEngineUsers(secrets: Secrets, database: string): EngineUser[] {
  return Object.entries(clickhousePasswords(secrets)).map(([name, password]) => ({
    name,
    passwordSha256Hex: hash('sha256', password, 'hex'),
    grants: toClickhouseGrants(
      processPermissions[name as ProcessName].clickhouse as TablePrivileges,
      {
        databases: [database, toAllDatabase(database)],
        analytics: toAnalyticsDatabase(database),
      },
    ),
  }))
}
