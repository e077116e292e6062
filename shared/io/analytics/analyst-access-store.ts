/**
 * ClickHouse's access control for analysts. The views read as a user that cannot sign in, whose row
 * policies filter by the analyst's tenant; an analyst has a role that may only read the views. On a
 * server that stores users these statements create all of it. The embedded engine has the users
 * from its file, and only the views are changed here.
 */
import { ClickHouseError } from '@clickhouse/client'
import {
  analystChoices,
  analystGrants,
  analystQuota,
  analystRole,
  analystSettings,
  guardedTables,
  readerSettings,
  readerUser,
  sharedTables,
  tenantOfUser,
  toAnalystUser,
  toRowFilter,
} from '#shared/core/analytics/analyst-access.ts'
import { processNames, processPermissions } from '#shared/core/permissions/process-permissions.ts'
import { type ClickhouseNode, quoteName } from '#shared/io/clickhouse/clickhouse.ts'
import { toAnalyticsDatabase } from './analytics-database.ts'

/** Processes that sign in to ClickHouse with a user of their own, called like them. */
export const clickhouseProcesses = processNames.filter(
  (name) =>
    processPermissions[name].clickhouse !== null && processPermissions[name].clickhouse !== 'owner',
)

/** SHA-256 as 64 zeros: no password has it, and no host is let in either. */
const noPassword = '0'.repeat(64)

/**
 * Everything that a server needs once, for any number of tenants. Saying it again is harmless.
 * @param names.database the internal one
 * @param names.owner who migrates: it sees all rows through the views, as processes do
 */
export function toAccessStatements(names: { database: string; owner: string }): string[] {
  const database = quoteName(names.database)
  const analytics = quoteName(toAnalyticsDatabase(names.database))
  const [ofViews, ...ofNames] = analystGrants(analytics)
  const filter = toRowFilter([names.owner, ...clickhouseProcesses], tenantOfUser)
  return [
    `create settings profile if not exists ${readerUser}`,
    `alter settings profile ${readerUser} settings ${toList(
      Object.entries(readerSettings).map(([name, value]) => `${name} = ${toValue(value)} const`),
    )}`,
    `create user if not exists ${readerUser}
  identified with sha256_hash by '${noPassword}' host none
  settings profile '${readerUser}'`,
    ...[...guardedTables, ...sharedTables].map(
      (table) => `grant select on ${database}.${table} to ${readerUser}`,
    ),
    // On some servers a table with row policies is empty for users without one: add the service's.
    ...guardedTables.flatMap((table) => [
      `create row policy if not exists of_tenant on ${database}.${table} to ${readerUser}`,
      `alter row policy of_tenant on ${database}.${table}
  for select using ${filter} to ${readerUser}`,
      `create row policy if not exists of_service on ${database}.${table}
  for select using 1 to all except ${readerUser}`,
    ]),
    `create settings profile if not exists ${analystRole}`,
    `alter settings profile ${analystRole} settings ${toList(toProfile())}`,
    `create role if not exists ${analystRole} settings profile '${analystRole}'`,
    `${ofViews} to ${analystRole}`,
    `create quota if not exists ${analystRole} keyed by user_name${toList(
      analystQuota.map(
        ({ seconds, queries, executionSeconds }) =>
          `for interval ${seconds} second max queries = ${queries}, ` +
          `execution_time = ${executionSeconds}`,
      ),
    )}
  to ${analystRole}`,
    // Last: whoever may not give these has the rest.
    ...ofNames.map((grant) => `${grant} to ${analystRole}`),
  ]
}

/**
 * Bounds the threads of all analysts together, by the workload that their settings name. For an
 * administrator to run: a server has one tree of workloads, which is not ours.
 */
export const workloadStatements = [
  'create resource if not exists cpu (master thread, worker thread)',
  'create workload if not exists `all`',
  `create workload if not exists analysts in \`all\` settings max_concurrent_threads = 4`,
]

function toProfile(): string[] {
  const names = new Set([...Object.keys(analystSettings), ...Object.keys(analystChoices)])
  return [...names].map((name) => {
    const value = analystSettings[name]
    const range = analystChoices[name]
    return [
      name,
      value === undefined ? '' : ` = ${toValue(value)}`,
      range ? ` min ${range.min} max ${range.max}` : '',
      name in analystChoices ? ' changeable_in_readonly' : '',
    ].join('')
  })
}

/** Values are constants of this code: there is nothing to escape. */
const toValue = (value: number | string): string =>
  typeof value === 'string' ? `'${value}'` : String(value)

const toList = (items: string[]) => `\n  ${items.join(',\n  ')}`

/**
 * An analyst's own user. The password stays here: its hash is sent.
 * @param analyst.passwordSha256Hex of the password's text with the salt after it
 */
export function toUserStatements(analyst: {
  tenantId: string
  name: string
  passwordSha256Hex: string
  salt: string
}): string[] {
  const user = quoteName(toAnalystUser(analyst.tenantId, analyst.name))
  const { passwordSha256Hex, salt } = analyst
  return [
    `create user or replace ${user}
  identified with sha256_hash by '${passwordSha256Hex}' salt '${salt}'
  default role none grantees none`,
    `grant ${analystRole} to ${user}`,
    `alter user ${user} default role ${analystRole}`,
  ]
}

/** Ends what an analyst may do; a query that runs is not stopped. */
export function toRemovalStatement(tenantId: string, name: string): string {
  return `drop user if exists ${quoteName(toAnalystUser(tenantId, name))}`
}

/** Makes a view read as the reader, whichever user queries it. */
export function toGuardStatement(database: string, view: string): string {
  const name = `${quoteName(toAnalyticsDatabase(database))}.${quoteName(view)}`
  return `alter table ${name} modify sql security definer definer = ${readerUser}`
}

/** Whether the server keeps users. The embedded engine has those of its file and no others. */
export async function keepsUsers(clickhouse: ClickhouseNode): Promise<boolean> {
  const result = await clickhouse.query({
    query: `select count() as n from system.user_directories
            where type in ('local_directory', 'replicated', 'memory')
              and JSONExtractBool(toString(params), 'readonly') = 0`,
    format: 'JSONEachRow',
  })
  const [row] = await result.json<{ n: number }>()
  return Number(row?.n) > 0
}

/** Runs statements one after another, each to its end. */
export async function runStatements(
  clickhouse: ClickhouseNode,
  statements: string[],
): Promise<void> {
  for (const query of statements) await clickhouse.command({ query })
}

/** Who we are to the server. */
async function findServiceUser(clickhouse: ClickhouseNode): Promise<string> {
  const result = await clickhouse.query({
    query: 'select currentUser() as user',
    format: 'JSONEachRow',
  })
  const [row] = await result.json<{ user: string }>()
  return row!.user
}

const accessDenied = '497'

/**
 * Sets up access for analysts on a server that keeps users, where we may: the owner of the database
 * does when it migrates, so the console only makes users of the role.
 */
export async function prepareAccess(clickhouse: ClickhouseNode, database: string): Promise<void> {
  try {
    if (!(await keepsUsers(clickhouse))) return
    const owner = await findServiceUser(clickhouse)
    await runStatements(clickhouse, toAccessStatements({ database, owner }))
  } catch (error) {
    if (error instanceof ClickHouseError && error.code === accessDenied) return
    throw error
  }
}

/**
 * Points every view that is not yet at the reader, where there is a reader that may read this
 * database. A view that was not is closed to analysts, never open.
 * @returns the names of the views that were pointed now
 */
export async function guardViews(clickhouse: ClickhouseNode, database: string): Promise<string[]> {
  try {
    const result = await clickhouse.query({
      query: `select name from system.tables
              where database = {analytics:String} and engine = 'View'
                and position(create_table_query, {mark:String}) = 0
                and exists(
                  select 1 from system.grants
                  where user_name = {reader:String} and database = {internal:String}
                )
              order by name`,
      query_params: {
        analytics: toAnalyticsDatabase(database),
        internal: database,
        reader: readerUser,
        mark: `DEFINER = ${readerUser}`,
      },
      format: 'JSONEachRow',
    })
    const views = (await result.json<{ name: string }>()).map(({ name }) => name)
    await runStatements(
      clickhouse,
      views.map((view) => toGuardStatement(database, view)),
    )
    return views
  } catch (error) {
    // A user that may not see users has no analysts to prepare.
    if (error instanceof ClickHouseError && error.code === accessDenied) return []
    throw error
  }
}
