/**
 * The roles of the processes in PostgreSQL, made of the table of rights by the owner: each can sign
 * in to this database alone and do there what its process needs. Saying it again changes nothing;
 * what the table no longer has is taken away.
 */
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto'
import {
  type ProcessName,
  processNames,
  processPermissions,
} from '#shared/core/permissions/process-permissions.ts'
import type { TablePrivileges } from '#shared/core/permissions/table-privileges.ts'
import type { Queryable } from './postgres.ts'
import type { SessionSettings } from './postgres-session.ts'

/** Processes that sign in to PostgreSQL with a role of their own. */
export const postgresProcesses = processNames.filter(
  (name) =>
    processPermissions[name].postgres !== null && processPermissions[name].postgres !== 'owner',
)

/** Roles belong to a whole server, so their names say which database they are for. */
export const toRole = (database: string, process: ProcessName): string => `${database}_${process}`

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`
const quoteValue = (text: string): string => `'${text.replaceAll("'", "''")}'`

/**
 * What PostgreSQL stores of a password, made here so that no password is in a statement or a log of
 * the server. The same for the same role and password.
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

/** The privileges of one role on tables, as statements. */
function toGrants(role: string, rights: TablePrivileges): string[] {
  return Object.entries(rights).map(
    ([table, privileges]) => `grant ${privileges.join(', ')} on ${quote(table)} to ${role}`,
  )
}

export type RoleOptions = {
  /** By process. One that is left out has no role made or changed. */
  passwords: Readonly<Partial<Record<ProcessName, string>>>
  /** Settings that every session of a role begins with. */
  settings: Readonly<Partial<Record<ProcessName, SessionSettings>>>
}

/**
 * Makes the roles and their grants in the database of this transaction.
 * @throws insufficient_privilege where we may not make roles
 */
export async function applyRoles(tx: Queryable, options: RoleOptions): Promise<string[]> {
  const { rows } = await tx.query<{ database: string }>('select current_database() as database')
  const { database } = rows[0]!
  const wanted = postgresProcesses.filter((process) => options.passwords[process] !== undefined)
  if (wanted.length === 0) return []
  await tx.query(`revoke all on database ${quote(database)} from public`)
  await tx.query('revoke create on schema public from public')
  for (const process of wanted) {
    const name = toRole(database, process)
    const role = quote(name)
    const { rowCount } = await tx.query('select 1 from pg_roles where rolname = $1', [name])
    const verifier = toScramVerifier(name, options.passwords[process]!)
    const statements = [
      `${rowCount === 0 ? 'create' : 'alter'} role ${role} login noinherit
         password ${quoteValue(verifier)}`,
      `grant connect on database ${quote(database)} to ${role}`,
      `grant usage on schema public to ${role}`,
      `revoke all on all tables in schema public from ${role}`,
      ...toGrants(role, processPermissions[process].postgres as TablePrivileges),
      `alter role ${role} in database ${quote(database)} reset all`,
      ...Object.entries(options.settings[process] ?? {}).map(
        ([setting, value]) =>
          `alter role ${role} in database ${quote(database)} set ${setting} = ${quoteValue(value)}`,
      ),
    ]
    for (const statement of statements) await tx.query(statement)
  }
  return wanted.map((process) => toRole(database, process))
}
