// Defaults of servers that are as far from ours as each server allows, for tests that nothing depends
// on them.
import { createHash } from 'node:crypto'
import type { EngineProfile, EngineUser } from '../../../deploy/local/clickhouse/server-config.ts'

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

const { idle_session_timeout: _, ...behindPooler } = hostilePostgres
/** The same behind a pooler: how long it keeps a connection to the server is its own. */
export const hostileBehindPooler = behindPooler

/** The statements that make settings the defaults of a database. */
export const toDatabaseSettings = (
  database: string,
  settings: Readonly<Record<string, string>>,
): string[] =>
  Object.entries(settings).map(
    ([name, value]) => `alter database "${database}" set ${name} = '${value}'`,
  )

/**
 * For each pinned setting of ClickHouse another value. With the dialect alone every statement of a
 * client without our settings fails.
 */
export const hostileClickhouse: Readonly<Record<string, number | string>> = {
  compatibility: '22.3',
  dialect: 'prql',
  session_timezone: 'Asia/Kathmandu',
  join_use_nulls: 1,
  group_by_use_nulls: 1,
  aggregate_functions_null_for_empty: 1,
  transform_null_in: 1,
  data_type_default_nullable: 1,
  cast_keep_nullable: 1,
  least_greatest_legacy_null_behavior: 1,
  empty_result_for_aggregation_by_empty_set: 1,
  empty_result_for_aggregation_by_constant_keys_on_empty_set: 0,
  prefer_column_name_to_alias: 1,
  enable_positional_arguments: 0,
  enable_global_with_statement: 0,
  enable_named_columns_in_function_tuple: 1,
  asterisk_include_alias_columns: 1,
  asterisk_include_materialized_columns: 1,
  union_default_mode: 'DISTINCT',
  except_default_mode: 'DISTINCT',
  intersect_default_mode: 'DISTINCT',
  join_default_strictness: 'ANY',
  join_any_take_last_row: 1,
  any_join_distinct_right_table_keys: 1,
  count_distinct_implementation: 'uniq',
  decimal_check_overflow: 0,
  date_time_overflow_behavior: 'saturate',
  final: 1,
  limit: 1,
  offset: 1,
  additional_table_filters: "{'telemetry': 'false'}",
  additional_result_filter: 'false',
  apply_deleted_mask: 0,
  optimize_move_to_prewhere_if_final: 1,
  distributed_group_by_no_merge: 1,
  skip_unavailable_shards: 1,
  use_query_cache: 1,
  partial_result_on_first_cancel: 1,
  read_overflow_mode: 'break',
  read_overflow_mode_leaf: 'break',
  group_by_overflow_mode: 'any',
  sort_overflow_mode: 'break',
  result_overflow_mode: 'break',
  timeout_overflow_mode: 'break',
  timeout_overflow_mode_leaf: 'break',
  set_overflow_mode: 'break',
  join_overflow_mode: 'break',
  transfer_overflow_mode: 'break',
  distinct_overflow_mode: 'break',
  allow_experimental_analyzer: 0,
  do_not_merge_across_partitions_select_final: 1,
  extremes: 1,
  implicit_transaction: 1,
  max_result_rows: 1,
  max_result_bytes: 1,
  max_rows_to_read: 1,
  max_bytes_to_read: 1,
  max_rows_to_group_by: 1,
  force_primary_key: 1,
  force_index_by_date: 1,
  async_insert: 1,
  wait_for_async_insert: 0,
  materialized_views_ignore_errors: 1,
  insert_deduplicate: 1,
  deduplicate_blocks_in_dependent_materialized_views: 1,
  insert_null_as_default: 0,
  default_normal_view_sql_security: 'NONE',
  default_materialized_view_sql_security: 'INVOKER',
  default_view_definer: 'nobody',
  default_table_engine: 'Memory',
  flatten_nested: 0,
  input_format_allow_errors_num: 100,
  input_format_allow_errors_ratio: 1,
  input_format_null_as_default: 0,
  input_format_defaults_for_omitted_fields: 0,
  input_format_skip_unknown_fields: 0,
  input_format_import_nested_json: 1,
  input_format_binary_read_json_as_string: 1,
  type_json_skip_duplicated_paths: 1,
  date_time_input_format: 'best_effort_us',
  date_time_output_format: 'unix_timestamp',
  output_format_json_quote_64bit_integers: 1,
  output_format_json_quote_64bit_floats: 1,
  output_format_json_quote_denormals: 1,
  output_format_json_quote_decimals: 1,
  output_format_json_named_tuples_as_objects: 0,
  output_format_json_skip_null_value_in_named_tuples: 1,
  output_format_json_array_of_rows: 1,
  output_format_json_validate_utf8: 1,
  date_time_64_output_format_cut_trailing_zeros_align_to_groups_of_thousands: 1,
  bool_true_representation: 'yes',
  bool_false_representation: 'no',
  http_write_exception_in_output_format: 1,
}

/** A user with all rights and a profile of its own. */
export function toEngineUser(
  settings: EngineProfile['settings'],
  fixed: readonly string[] = [],
): EngineUser {
  return {
    name: 'stranger',
    passwordSha256Hex: createHash('sha256').update(strangerPassword).digest('hex'),
    grants: ['GRANT ALL ON *.*'],
    // The dialect of statements cannot be an experimental one without this.
    profile: { settings: { allow_experimental_prql_dialect: 1, ...settings }, fixed },
  }
}

const strangerPassword = 'test'

/** The URL of a test's engine for that user. */
export function asStranger(engineUrl: string): string {
  const url = new URL(engineUrl)
  url.username = 'stranger'
  url.password = strangerPassword
  return url.href.replace(/\/$/, '')
}
