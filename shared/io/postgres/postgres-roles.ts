/**
 * Creates the processes' roles in PostgreSQL from the table of privileges: each may connect to this
 * database only and has the privileges that its process needs. It is idempotent, and it revokes
 * privileges that the table no longer has.
 */
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto'
import {
  type ProcessName,
  processNames,
  processPermissions,
} from '#shared/core/permissions/process-permissions.ts'
import type { TablePrivileges } from '#shared/core/permissions/table-privileges.ts'
import type { Queryable } from './postgres.ts'
import { type SessionSettings, schemaName } from './session-settings.ts'

/** Processes that connect to PostgreSQL with their own role. */
export const postgresProcesses = processNames.filter(
  (name) =>
    processPermissions[name].postgres !== null && processPermissions[name].postgres !== 'owner',
)

/** Roles belong to a whole server, so their names contain the database. */
export const toRole = (database: string, process: ProcessName): string => `${database}_${process}`

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`
const quoteValue = (text: string): string => `'${text.replaceAll("'", "''")}'`

/**
 * Computes what PostgreSQL stores of a password, so that no statement or server log contains it. It
 * is deterministic.
 */
export function toScramVerifier(role: string, password: string): string {
  const iterations = 4_096
  const salt = createHash('sha256').update(`${role} ${password}`).digest().subarray(0, 16)
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256')
  const keyOf = (text: string) => createHmac('sha256', salted).update(text).digest()
  const stored = createHash('sha256').update(keyOf('Client Key')).digest('base64')
  const server = keyOf('Server Key').toString('base64')
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${stored}:${server}`
}

const isFunction = (name: string): boolean => name.includes('(')

/** The privileges of one role on tables and functions, as statements. */
function toGrants(role: string, rights: TablePrivileges): string[] {
  return Object.entries(rights).map(([name, privileges]) => {
    const what = isFunction(name) ? `function ${name}` : quote(name)
    return `grant ${privileges.join(', ')} on ${what} to ${role}`
  })
}

type RoleOptions = {
  /** By process. A process without a password gets no role. */
  passwords: Readonly<Partial<Record<ProcessName, string>>>
  /** Initial settings of the role's sessions. */
  settings: Readonly<Partial<Record<ProcessName, SessionSettings>>>
}

/**
 * PostgreSQL lets every role make large objects. Only a superuser can take that right away.
 * @returns false when this user may not take it away
 */
export async function forbidLargeObjects(tx: Queryable): Promise<boolean> {
  const { rows } = await tx.query<{ name: string }>(
    `select oid::regprocedure::text as name from pg_proc
     where pronamespace = 'pg_catalog'::regnamespace
       and (proname ~ '^(be_)?lo_' or proname in ('loread', 'lowrite'))
       and has_function_privilege('public', oid, 'execute')`,
  )
  // Of a function of another owner this warns, and changes nothing.
  for (const { name } of rows) await tx.query(`revoke all on function ${name} from public`)
  const { rows: left } = await tx.query<{ may: boolean }>(
    `select has_function_privilege('public', 'lo_create(oid)', 'execute') as may`,
  )
  return !left[0]!.may
}

/**
 * Creates the roles and their grants in the database of this transaction.
 * @returns the names of the roles
 * @throws insufficient_privilege when the user may not create roles
 */
export async function applyRoles(tx: Queryable, options: RoleOptions): Promise<string[]> {
  const { rows } = await tx.query<{ database: string }>('select current_database() as database')
  const { database } = rows[0]!
  const wanted = postgresProcesses.filter((process) => options.passwords[process] !== undefined)
  if (wanted.length === 0) return []
  await tx.query(`revoke all on database ${quote(database)} from public`)
  await tx.query(`revoke create on schema ${schemaName} from public`)
  // They run as the owner. A dump that was restored without privileges gives them to everybody.
  const functions = postgresProcesses.flatMap((process) =>
    Object.keys(processPermissions[process].postgres as TablePrivileges).filter(isFunction),
  )
  for (const name of functions) await tx.query(`revoke all on function ${name} from public`)
  const { rows: settings } = await tx.query<{ name: string }>('select name from pg_settings')
  const known = new Set(settings.map(({ name }) => name))
  for (const process of wanted) {
    const name = toRole(database, process)
    const role = quote(name)
    const { rowCount } = await tx.query('select 1 from pg_roles where rolname = $1', [name])
    const verifier = toScramVerifier(name, options.passwords[process]!)
    const statements = [
      `${rowCount === 0 ? 'create' : 'alter'} role ${role} login noinherit
         password ${quoteValue(verifier)}`,
      `grant connect on database ${quote(database)} to ${role}`,
      `grant usage on schema ${schemaName} to ${role}`,
      `revoke all on all tables in schema ${schemaName} from ${role}`,
      `revoke all on all functions in schema ${schemaName} from ${role}`,
      ...toGrants(role, processPermissions[process].postgres as TablePrivileges),
      `alter role ${role} in database ${quote(database)} reset all`,
      ...Object.entries(options.settings[process] ?? {})
        .filter(([setting]) => known.has(setting))
        .map(
          ([setting, value]) =>
            `alter role ${role} in database ${quote(database)} set ${setting} = ${quoteValue(value)}`,
        ),
    ]
    for (const statement of statements) await tx.query(statement)
  }
  return wanted.map((process) => toRole(database, process))
}
