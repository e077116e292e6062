// Defaults of servers that are as far from ours as each server allows, for tests that nothing depends
// on them.

/** For each pinned setting of PostgreSQL a value that changes answers, or ends work. */
export const hostilePostgres: Readonly<Record<string, string>> = {
  DateStyle: 'SQL, DMY',
  IntervalStyle: 'sql_standard',
  TimeZone: 'Asia/Kathmandu',
  bytea_output: 'escape',
  extra_float_digits: '-15',
  search_path: 'nowhere',
  standard_conforming_strings: 'off',
  array_nulls: 'off',
  transform_null_equals: 'on',
  gin_fuzzy_search_limit: '1',
  default_transaction_isolation: 'serializable',
  default_transaction_deferrable: 'on',
  transaction_timeout: '1500',
  idle_session_timeout: '1500',
  exit_on_error: 'on',
}

/** The limits that a session of ours has of its own. */
export const hostilePostgresLimits: Readonly<Record<string, string>> = {
  statement_timeout: '100',
  lock_timeout: '1',
  idle_in_transaction_session_timeout: '20',
}

/** The statements that make settings the defaults of a database. */
export const toDatabaseSettings = (
  database: string,
  settings: Readonly<Record<string, string>>,
): string[] =>
  Object.entries(settings).map(
    ([name, value]) => `alter database "${database}" set ${name} = '${value}'`,
  )
