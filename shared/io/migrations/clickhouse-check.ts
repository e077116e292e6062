/**
 * Whether ClickHouse is what a process of this release needs, for `/readyz`. A missing right would
 * otherwise show as a 503 at the first use, and stay.
 */
import { ClickHouseError } from '@clickhouse/client'
import { describeOldServer } from '#shared/core/base/server-versions.ts'
import { toAllDatabase } from '#shared/core/base/shards.ts'
import {
  type clickhousePrivileges,
  type TablePrivileges,
  toClickhouseGrants,
} from '#shared/core/permissions/table-privileges.ts'
import { toAnalyticsDatabase } from '#shared/io/analytics/analytics-database.ts'
import {
  type Clickhouse,
  type ClickhouseNode,
  checkClickhouse,
  quoteName,
  serversOf,
  toServerFault,
} from '#shared/io/clickhouse/clickhouse.ts'
import { findMissingGrants, readText } from '#shared/io/clickhouse/missing-grants.ts'
import type { ReadyCheck } from '#shared/io/http/internal-server.ts'
import { createFaultReporter, UnfitServerError } from '#shared/io/process/connect-faults.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { SchemaVersions } from './schema-versions.ts'
import { findOtherSpread } from './shard-tables.ts'

type ClickhouseCheckOptions = {
  clickhouse: Clickhouse
  database: string
  /** Of the process, by table: all of them are needed. */
  privileges: (typeof clickhousePrivileges)[keyof typeof clickhousePrivileges]
  schemas: SchemaVersions
  log: Log
}

/**
 * Logs each reason once. Version, rights and the number of shards are read until they are right
 * once; the schema is read each time, since a store can be restored from an old backup.
 */
export function createClickhouseCheck(options: ClickhouseCheckOptions): ReadyCheck {
  const { clickhouse, schemas, log } = options
  const reporter = createFaultReporter('ClickHouse', log)
  let isChecked = false
  return async () => {
    const fault = await checkClickhouse(clickhouse, reporter)
    if (fault !== null) return fault
    for (const one of serversOf(clickhouse)) {
      const { server } = one
      try {
        if (!isChecked) await requireFitServer(server, options)
        const older = await schemas.compare('clickhouse', await readNewestMigration(server))
        if (older !== null) throw new UnfitServerError(older)
        if ('analytics.*' in options.privileges) await requireViews(server, schemas)
        if (clickhouse.shards.length > 0) await requireOtherShards(server, options.database)
      } catch (error) {
        return toServerFault(one, reporter.failed(error))
      }
    }
    isChecked = true
    reporter.worked()
    return null
  }
}

/** Each shard answers here, but shards query each other by another protocol. */
async function requireOtherShards(node: ClickhouseNode, database: string): Promise<void> {
  const all = quoteName(toAllDatabase(database))
  try {
    // Every process may read this table; nothing has this key.
    await readText(node, `select count() from ${all}.telemetry where tenant_id = ''`)
  } catch {
    throw new UnfitServerError('does not reach the other shards')
  }
}

async function requireFitServer(
  node: ClickhouseNode,
  { clickhouse, database, privileges }: ClickhouseCheckOptions,
): Promise<void> {
  const version = await readText(node, 'select version()')
  const old = describeOldServer('ClickHouse', version)
  if (old !== null) throw new UnfitServerError(old)
  const { shards } = clickhouse
  const all = toAllDatabase(database)
  const databases = shards.length === 0 ? [database] : [database, all]
  const names = { databases, analytics: toAnalyticsDatabase(database) }
  const grants = toClickhouseGrants(privileges as TablePrivileges, names)
  const missing = await findMissingGrants(node, grants)
  if (missing.length > 0) {
    throw new UnfitServerError(`does not grant this user: ${missing.join('; ')}`)
  }
  // After the rights, without which a database is not seen.
  const otherSpread = await findOtherSpread(
    node,
    { database, all },
    {
      shards: shards.length,
      hasReplicas: shards.some(({ replicas }) => replicas.length > 1),
    },
  )
  if (otherSpread !== null) throw new UnfitServerError(otherSpread)
}

/** @returns null without a table */
const readNewestMigration = (clickhouse: ClickhouseNode): Promise<string | null> =>
  readNewest(clickhouse, 'select max(name) from schema_migrations')

async function requireViews(clickhouse: ClickhouseNode, schemas: SchemaVersions): Promise<void> {
  const newest = await readNewest(clickhouse, 'select max(version) from schema_views')
  const older = await schemas.compareViews(Number(newest ?? 0))
  if (older !== null) throw new UnfitServerError(older)
}

/** @returns null without a table, or without a row of text */
async function readNewest(clickhouse: ClickhouseNode, query: string): Promise<string | null> {
  try {
    return (await readText(clickhouse, query)) || null
  } catch (error) {
    if (error instanceof ClickHouseError && error.type === 'UNKNOWN_TABLE') return null
    throw error
  }
}
