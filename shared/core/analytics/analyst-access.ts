/**
 * The access of analysts to ClickHouse: the tables behind the views and their row policies, limits
 * of a query, and settings that a client may change. The statements for a real server and the users
 * file of the embedded engine are both made from it.
 */
import { sqlSettings } from '#shared/core/base/clickhouse-settings.ts'
import { tenantIdPattern } from '#shared/core/base/ids.ts'
import { quoteText } from '#shared/core/scoring/sql/scoring-sql-text.ts'

/** SQL: the tenant in the current user's name, also within a view. No setting can change it. */
export const tenantOfUser = "splitByChar('.', currentUser())[2]"

/** The definer of the views, which reads the internal tables. It cannot sign in. */
export const readerUser = 'analytics_reader'

/**
 * The internal tables behind the views with a tenant in every row. A row policy filters the rows of
 * the analyst's tenant before any expression of the analyst is evaluated.
 */
export const guardedTables = [
  'telemetry',
  'sessions',
  'devices',
  'user_devices',
  'decisions',
  'alerts_replica',
  'deliveries_replica',
  'labels_replica',
  'reconciliation_entries',
  'reconciliation_accepted',
  'reconciliation_expected_alerts',
  'reconciliation_cutoffs',
  'prevalence_spikes',
  'shadow_decisions',
  'installs',
  'replays',
  'phone_links',
  'phone_corrections_replica',
] as const

/** Tables without a tenant: instants and stream offsets, the same for all tenants. */
export const sharedTables = [
  'replication_rounds',
  'reconciliation_watermarks',
  'reconciliation_start',
  'prevalence_checks',
] as const

/**
 * The condition of the row policies, the same for every table. The service's users see all rows.
 * @param tenantExpression SQL of the tenant whose rows all other users see
 */
export function toRowFilter(serviceUsers: readonly string[], tenantExpression: string): string {
  const names = serviceUsers.map(quoteText)
  const isService =
    names.length === 1 ? `currentUser() = ${names[0]}` : `currentUser() in (${names.join(', ')})`
  return `${isService} or tenant_id = ${tenantExpression}`
}

const mebibyte = 1024 * 1024

/**
 * The settings of an analyst's query, which it cannot change. They limit time, memory and results,
 * the ways in which one query could starve everything else.
 */
export const analystSettings: Record<string, number | string> = {
  readonly: 1,
  allow_ddl: 0,
  allow_introspection_functions: 0,
  max_threads: 1,
  max_execution_time: 30,
  max_memory_usage: 1024 * mebibyte,
  max_memory_usage_for_user: 2048 * mebibyte,
  max_temporary_data_on_disk_size_for_query: 2048 * mebibyte,
  max_temporary_data_on_disk_size_for_user: 4096 * mebibyte,
  max_rows_to_read: 1_000_000_000,
  max_result_rows: 1_000_000,
  max_result_bytes: 256 * mebibyte,
  // A late error then has its HTTP status instead of cutting off a partial answer.
  http_wait_end_of_query: 1,
  // The engine checks time limits and kills between blocks. A row that compares a million values
  // takes 7 ms, so a block of such rows takes 7 s. Larger blocks are no faster for usual queries.
  max_block_size: 1_024,
  function_range_max_elements_in_block: 1_000_000,
  // The service's own queries have priority, where the process may change priorities.
  os_threads_nice_value_query: 15,
  // Has no effect where there is no workload of this name.
  workload: 'analysts',
  max_concurrent_queries_for_user: 4,
  // A cache that tenants share could leak data of one to another.
  use_query_cache: 0,
  use_query_condition_cache: 0,
  function_sleep_max_microseconds_per_block: 100_000,
  // `group by signals.root.su_binary` then works as people first write it.
  allow_suspicious_types_in_group_by: 1,
  allow_suspicious_types_in_order_by: 1,
  cancel_http_readonly_queries_on_client_close: 1,
  ...sqlSettings,
}

/**
 * The same in the local stack, where all analysts share one user of the engine: as many queries at
 * once as the console runs, and together the memory of four.
 */
export const localAnalystSettings: typeof analystSettings = {
  ...analystSettings,
  max_memory_usage: 512 * mebibyte,
  max_memory_usage_for_user: 4 * 512 * mebibyte,
  max_temporary_data_on_disk_size_for_query: 1024 * mebibyte,
  max_temporary_data_on_disk_size_for_user: 4 * 1024 * mebibyte,
  max_concurrent_queries_for_user: 16,
}

/**
 * The settings that a client may change: result formats, and limits within a range. Drivers and
 * tools send them by default: Grafana 60 s, Metabase and JDBC a number of rows with `break`, and
 * DBeaver its format of JSON.
 */
export const analystChoices: Record<string, { min: number; max: number } | null> = {
  max_execution_time: { min: 1, max: 60 },
  max_result_rows: { min: 1, max: 1_000_000 },
  max_block_size: { min: 1, max: 1_024 },
  // ClickHouse itself shares its threads between queries that ask for many.
  max_threads: { min: 1, max: 64 },
  result_overflow_mode: null,
  cancel_http_readonly_queries_on_client_close: null,
  date_time_input_format: null,
  date_time_output_format: null,
  enable_http_compression: null,
  extremes: null,
  group_by_use_nulls: null,
  http_headers_progress_interval_ms: { min: 100, max: 3_600_000 },
  http_write_exception_in_output_format: null,
  http_zlib_compression_level: { min: 1, max: 6 },
  join_use_nulls: null,
  log_comment: null,
  output_format_arrow_string_as_string: null,
  output_format_binary_encode_types_in_binary_format: null,
  output_format_binary_write_json_as_string: null,
  output_format_json_array_of_rows: null,
  output_format_json_named_tuples_as_objects: null,
  output_format_json_quote_64bit_floats: null,
  output_format_json_quote_64bit_integers: null,
  output_format_json_quote_decimals: null,
  output_format_json_quote_denormals: null,
  output_format_json_validate_utf8: null,
  output_format_native_encode_types_in_binary_format: null,
  output_format_native_use_flattened_dynamic_and_json_serialization: null,
  output_format_native_write_json_as_string: null,
  send_progress_in_http_headers: null,
  session_timezone: null,
}

/** Of all analysts; users with it may read the views. */
export const analystRole = 'analyst'

/** What an analyst may read: the views, and what their names and columns are. */
export const analystGrants = (analytics: string): string[] => [
  `GRANT SELECT ON ${analytics}.*`,
  'GRANT SELECT ON information_schema.*',
  'GRANT SELECT ON INFORMATION_SCHEMA.*',
  // For information_schema.tables. It has the parts of tables that a user may see: here none.
  'GRANT SELECT ON system.parts',
]

/** How many queries an analyst may run in each interval, and for how many seconds in all. */
export const analystQuota = [
  { seconds: 60, queries: 600, executionSeconds: 60 },
  { seconds: 86_400, queries: 50_000, executionSeconds: 7_200 },
] as const

/**
 * The indexes of ids on guarded tables. The views do without them: an index of a block of rows that
 * two tenants share tells of both, so EXPLAIN and the number of rows read would say whether another
 * tenant has a user.
 */
export const sharedIndexes = [
  ...['event_id_bloom', 'user_id_bloom', 'account_id_bloom'],
  ...['alert_device_bloom', 'alert_user_bloom', 'alert_id_bloom'],
  ...['delivery_device_bloom', 'delivery_user_bloom', 'delivery_alert_bloom'],
  ...['shadow_device_bloom', 'shadow_user_bloom', 'shadow_account_bloom'],
  'label_subject_bloom',
] as const

/**
 * Settings of the reader that hold inside a view, whatever the analyst chooses: a view has one
 * meaning. If one of the first three were changed, an analyst's condition could be evaluated on
 * other tenants' rows before the row policy, and an error message would show their values. SETTINGS
 * of a subquery bypass all constraints of the analyst's user, but not those of the reader.
 */
export const readerSettings: Record<string, number | string> = {
  ignore_data_skipping_indices: sharedIndexes.join(','),
  apply_row_policy_after_final: 0,
  optimize_move_to_prewhere_if_final: 0,
  use_query_condition_cache: 0,
  ...sqlSettings,
}

/** An analyst's name within the tenant. */
export const analystNamePattern = /^[a-z0-9][a-z0-9-]{0,31}$/

/** The analyst of each tenant as whom the console itself runs queries of operators. */
export const reservedAnalyst = 'console'

/** The user name of an analyst; neither part can contain a dot. */
export function toAnalystUser(tenantId: string, name: string): string {
  return `analyst.${tenantId}.${name}`
}

/** The tenant and analyst of a user name, or null when it is not an analyst's. */
export function parseAnalystUser(user: string): { tenantId: string; name: string } | null {
  const [prefix, tenantId = '', name = '', ...rest] = user.split('.')
  const fits = prefix === 'analyst' && rest.length === 0
  if (!fits || !tenantIdPattern.test(tenantId) || !analystNamePattern.test(name)) return null
  return { tenantId, name }
}
