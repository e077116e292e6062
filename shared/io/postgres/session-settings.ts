/**
 * The settings of PostgreSQL that answers depend on. A server, a database and a role can each set
 * them otherwise, so every connection of ours sets them (`prepareConnection`), and so do the roles
 * that `migrate` creates. What a session may not set by itself is refused by name.
 * postgres/README.md says of every other setting why it does no harm.
 */

/** Settings of PostgreSQL by name, times in ms. */
export type SessionSettings = Readonly<Record<string, string>>

/** The schema of every table. Functions of the migrations name it as well. */
export const schemaName = 'public'

/** Of every session. A server that does not know one of them is older than it. */
export const pinnedSettings: SessionSettings = {
  // The text of values, which the driver parses in these forms.
  DateStyle: 'ISO, MDY',
  IntervalStyle: 'postgres',
  TimeZone: 'UTC',
  bytea_output: 'hex',
  extra_float_digits: '1',
  // What a statement means, and whether it finds every row.
  search_path: schemaName,
  standard_conforming_strings: 'on',
  array_nulls: 'on',
  transform_null_equals: 'off',
  gin_fuzzy_search_limit: '0',
  // What a transaction sees, and how long it may take.
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
  transaction_timeout: '0',
  // How long a session lasts: the pool ends it.
  idle_session_timeout: '0',
  exit_on_error: 'off',
}

/** What a session cannot set, of its database and its role. */
export type ServerFacts = {
  encoding: string
  replication_role: string
  synchronous_commit: string
  may_use_schema: boolean | null
  database: string
  role: string
}

/** SQL: the columns of `ServerFacts`. */
export const serverFactsSql = `current_setting('server_encoding') as encoding,
  current_setting('session_replication_role') as replication_role,
  current_setting('synchronous_commit') as synchronous_commit,
  has_schema_privilege(to_regnamespace('${schemaName}')::oid, 'usage') as may_use_schema,
  current_database() as database, current_user as role`

/** @returns null, or what is wrong and what mends it, as the end of a sentence */
export function describeUnfit(facts: ServerFacts): string | null {
  const { encoding, may_use_schema: mayUseSchema } = facts
  if (encoding !== 'UTF8') {
    return (
      `has the encoding ${encoding}, and ids need UTF8: make another database with ` +
      "`create database ... encoding 'UTF8' template template0`"
    )
  }
  if (mayUseSchema === null) {
    return `has no schema ${schemaName}: \`create schema ${schemaName}\``
  }
  if (!mayUseSchema) return `does not let this user into the schema ${schemaName}`
  // Without its triggers the audit log is not append-only, and removed rows leave theirs behind.
  if (facts.replication_role !== 'origin') {
    return describeSetting(facts, ['session_replication_role', facts.replication_role, 'origin'])
  }
  // What was acknowledged would be lost with a crash.
  if (facts.synchronous_commit === 'off') {
    return describeSetting(facts, ['synchronous_commit', 'off', 'on'])
  }
  return null
}

/** The statement wins over every other place of the setting, for new sessions. */
export function describeSetting(
  { database, role }: Pick<ServerFacts, 'database' | 'role'>,
  [name, found, wanted]: readonly [name: string, found: string, wanted: string],
): string {
  const quote = (text: string) => `"${text.replaceAll('"', '""')}"`
  const where = `alter role ${quote(role)} in database ${quote(database)}`
  return `has ${name} = ${found}: \`${where} set ${name} = ${wanted}\``
}
