/**
 * What an analyst may do with the database, said once: which tables stand behind the views and how
 * each is confined to a tenant, how much one query may take, and what a client may choose itself.
 * The embedded engine's users file and the statements for a real server are both made of it.
 */
import { tenantIdPattern } from '#shared/core/base/ids.ts'
import { quoteText } from '#shared/core/scoring/sql/scoring-sql-text.ts'

/** Reads the internal tables on behalf of the views. No one can sign in as it. */
export const readerUser = 'analytics_reader'

/**
 * The internal tables behind the views that have a tenant in every row. The reader sees the rows
 * of the analyst's tenant and no others, before anything that the analyst wrote is computed.
 */
export const guardedTables = [
  'telemetry',
  'sessions',
  'devices',
  'user_devices',
  'alerts_replica',
  'deliveries_replica',
  'reconciliation_entries',
  'reconciliation_accepted',
  'reconciliation_expected_alerts',
  'reconciliation_cutoffs',
  'prevalence_spikes',
  'shadow_decisions',
] as const

/** Those without a tenant: instants and positions, the same for everybody. */
export const sharedTables = [
  'replication_rounds',
  'reconciliation_watermarks',
  'reconciliation_start',
  'prevalence_checks',
] as const

/**
 * The condition that a table's rows are confined by, the same for every table: the service's users
 * see all rows.
 * @param tenantExpression SQL of the tenant that everybody else is confined to
 */
export function toRowFilter(serviceUsers: readonly string[], tenantExpression: string): string {
  const names = serviceUsers.map(quoteText)
  const isService =
    names.length === 1 ? `currentUser() = ${names[0]}` : `currentUser() in (${names.join(', ')})`
  return `${isService} or tenant_id = ${tenantExpression}`
}

const mebibyte = 1024 * 1024

/**
 * What a query of an analyst begins with and cannot change: time, memory and answers without end
 * are the three ways in which one query could stand in the way of everything else.
 */
export const analystSettings: Record<string, number | string> = {
  readonly: 1,
  allow_ddl: 0,
  allow_introspection_functions: 0,
  max_threads: 1,
  max_execution_time: 30,
  timeout_overflow_mode: 'throw',
  max_memory_usage: 1024 * mebibyte,
  max_memory_usage_for_user: 2048 * mebibyte,
  max_temporary_data_on_disk_size_for_query: 2048 * mebibyte,
  max_temporary_data_on_disk_size_for_user: 4096 * mebibyte,
  max_rows_to_read: 1_000_000_000,
  max_result_rows: 1_000_000,
  max_result_bytes: 256 * mebibyte,
  result_overflow_mode: 'throw',
  // An error that comes late is then an error with its status, not the end of half an answer.
  http_wait_end_of_query: 1,
  // The engine looks at the clock, and at a kill, between blocks. A row that compares a million
  // values takes 7 ms, so a block of such rows takes 7 s; larger blocks are no faster for the usual
  // queries.
  max_block_size: 1_024,
  function_range_max_elements_in_block: 1_000_000,
  // The service's own queries come first, where the process has the right to lower a priority.
  os_threads_nice_value_query: 15,
  max_concurrent_queries_for_user: 4,
  // A cache that is shared by tenants is one that can tell one of them about another.
  use_query_cache: 0,
  use_query_condition_cache: 0,
  function_sleep_max_microseconds_per_block: 100_000,
  cancel_http_readonly_queries_on_client_close: 1,
}

/**
 * The same in the local stack, where one user of the engine asks for all analysts: how many ask at
 * once is decided before the engine, and four queries together fit into what that user may take.
 */
export const localAnalystSettings: typeof analystSettings = {
  ...analystSettings,
  max_memory_usage: 512 * mebibyte,
  max_memory_usage_for_user: 4 * 512 * mebibyte,
  max_temporary_data_on_disk_size_for_query: 1024 * mebibyte,
  max_temporary_data_on_disk_size_for_user: 4 * 1024 * mebibyte,
  max_concurrent_queries_for_user: 0,
}

/**
 * What a client may set although it may set nothing: how results are written, and limits that can
 * be made narrower. Drivers and Grafana send these by themselves.
 */
export const analystChoices: Record<string, { min: number; max: number } | null> = {
  max_execution_time: { min: 1, max: 30 },
  max_result_rows: { min: 1, max: 1_000_000 },
  date_time_input_format: null,
  date_time_output_format: null,
  enable_http_compression: null,
  extremes: null,
  group_by_use_nulls: null,
  http_headers_progress_interval_ms: { min: 100, max: 3_600_000 },
  http_write_exception_in_output_format: null,
  http_zlib_compression_level: { min: 1, max: 6 },
  join_use_nulls: null,
  output_format_arrow_string_as_string: null,
  output_format_json_array_of_rows: null,
  output_format_json_named_tuples_as_objects: null,
  output_format_json_quote_64bit_floats: null,
  output_format_json_quote_64bit_integers: null,
  output_format_json_quote_decimals: null,
  output_format_json_quote_denormals: null,
  output_format_json_validate_utf8: null,
  output_format_native_encode_types_in_binary_format: null,
  output_format_native_use_flattened_dynamic_and_json_serialization: null,
  send_progress_in_http_headers: null,
  session_timezone: null,
}

/**
 * What the reader's work within a view is pinned to. With these two changed, a condition that the
 * analyst wrote could be computed on other tenants' rows before they are left out, and an error
 * message would show their values: the engine lets a subquery's SETTINGS past every constraint of
 * the user who writes it, but not past the reader's.
 */
export const readerSettings: Record<string, number> = {
  apply_row_policy_after_final: 0,
  optimize_move_to_prewhere_if_final: 0,
  use_query_condition_cache: 0,
}

/**
 * How many queries of analysts an embedded engine runs at once, each in one thread, on a machine
 * with so many cores. One tenant never has all permits, so there are at least two. A query
 * takes at most `analystQueryMaxMs`, so a tenant waits at most that long for two other tenants.
 */
export function toAnalystQueryLimits(cores: number) {
  const total = Math.min(4, Math.max(2, cores - 1))
  return {
    perTenant: Math.min(2, total - 1),
    total,
    queuePerTenant: 16,
    waitMs: 2 * analystQueryMaxMs,
  }
}

/** The engine's own limit of 30 s and a moment in which it ends the query by itself. */
export const analystQueryMaxMs = 32_000

/**
 * Bytes of an answer of the local stack, which holds each until it is whole: with four at once
 * 256 MiB here and as much in the engine.
 */
export const analystAnswerBytesMax = 64 * mebibyte

/** An analyst's name within the tenant. */
export const analystNamePattern = /^[a-z0-9][a-z0-9-]{0,31}$/

/** The user that an analyst signs in as; neither part can hold a dot. */
export function toAnalystUser(tenantId: string, name: string): string {
  return `analyst.${tenantId}.${name}`
}

/** The tenant and name in a user's name, or null when it is not an analyst's. */
export function parseAnalystUser(user: string): { tenantId: string; name: string } | null {
  const [prefix, tenantId = '', name = '', ...rest] = user.split('.')
  const fits = prefix === 'analyst' && rest.length === 0
  if (!fits || !tenantIdPattern.test(tenantId) || !analystNamePattern.test(name)) return null
  return { tenantId, name }
}
