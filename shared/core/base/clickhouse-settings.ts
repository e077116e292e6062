/**
 * The settings of ClickHouse that answers depend on. A user's profile can set each of them
 * otherwise, so every client of ours sends all of them with each request, and the profiles of
 * analysts and of the views' reader have those of `sqlSettings`. A client sets further limits of
 * its own.
 */

type Settings = Readonly<Record<string, number | string>>

/** What a statement means, and that it fails rather than answers in part. */
export const sqlSettings: Settings = {
  // An older release's defaults, in place of those that a profile does not name.
  compatibility: '',
  dialect: 'clickhouse',
  // Columns have their time zone; `now()` and literals have this one.
  session_timezone: 'UTC',
  // Null, or the default of the type, where there is no value.
  join_use_nulls: 0,
  group_by_use_nulls: 0,
  aggregate_functions_null_for_empty: 0,
  transform_null_in: 0,
  data_type_default_nullable: 0,
  cast_keep_nullable: 0,
  least_greatest_legacy_null_behavior: 0,
  empty_result_for_aggregation_by_empty_set: 0,
  empty_result_for_aggregation_by_constant_keys_on_empty_set: 1,
  // What a name, a number and a keyword stand for.
  prefer_column_name_to_alias: 0,
  enable_positional_arguments: 1,
  enable_global_with_statement: 1,
  enable_named_columns_in_function_tuple: 0,
  asterisk_include_alias_columns: 0,
  asterisk_include_materialized_columns: 0,
  union_default_mode: '',
  except_default_mode: 'ALL',
  intersect_default_mode: 'ALL',
  join_default_strictness: 'ALL',
  join_any_take_last_row: 0,
  any_join_distinct_right_table_keys: 0,
  count_distinct_implementation: 'uniqExact',
  // Values that a type does not have.
  decimal_check_overflow: 1,
  date_time_overflow_behavior: 'ignore',
  // Which rows there are.
  final: 0,
  limit: 0,
  offset: 0,
  apply_deleted_mask: 1,
  optimize_move_to_prewhere_if_final: 0,
  distributed_group_by_no_merge: 0,
  skip_unavailable_shards: 0,
  use_query_cache: 0,
  partial_result_on_first_cancel: 0,
  // At a limit a query fails.
  read_overflow_mode: 'throw',
  read_overflow_mode_leaf: 'throw',
  group_by_overflow_mode: 'throw',
  sort_overflow_mode: 'throw',
  result_overflow_mode: 'throw',
  timeout_overflow_mode: 'throw',
  timeout_overflow_mode_leaf: 'throw',
  set_overflow_mode: 'throw',
  join_overflow_mode: 'throw',
  transfer_overflow_mode: 'throw',
  distinct_overflow_mode: 'throw',
}

/** What else each client of the service sends. */
export const pinnedClickhouseSettings: Settings = {
  ...sqlSettings,
  allow_experimental_analyzer: 1,
  // Not of a profile: as a constant there, the engine answers views otherwise.
  additional_table_filters: '{}',
  additional_result_filter: '',
  do_not_merge_across_partitions_select_final: 0,
  extremes: 0,
  implicit_transaction: 0,
  // The service bounds its own answers.
  max_result_rows: 0,
  max_result_bytes: 0,
  max_rows_to_read: 0,
  max_bytes_to_read: 0,
  max_rows_to_group_by: 0,
  force_primary_key: 0,
  force_index_by_date: 0,
  // A response means that the rows are in the table and in the targets of its views.
  async_insert: 0,
  wait_for_async_insert: 1,
  materialized_views_ignore_errors: 0,
  // Rows have keys: never drop a block because it equals an earlier one.
  insert_deduplicate: 0,
  deduplicate_blocks_in_dependent_materialized_views: 0,
  insert_null_as_default: 1,
  // Who a view of the migrations reads as, and what a table without an engine is.
  default_normal_view_sql_security: 'INVOKER',
  default_materialized_view_sql_security: 'DEFINER',
  default_view_definer: 'CURRENT_USER',
  default_table_engine: 'MergeTree',
  flatten_nested: 1,
  // Rows that are sent: every one counts, and none is taken for another.
  input_format_allow_errors_num: 0,
  input_format_allow_errors_ratio: 0,
  input_format_null_as_default: 1,
  input_format_defaults_for_omitted_fields: 1,
  input_format_skip_unknown_fields: 1,
  input_format_import_nested_json: 0,
  input_format_binary_read_json_as_string: 0,
  type_json_skip_duplicated_paths: 0,
  date_time_input_format: 'basic',
  // The text of values.
  date_time_output_format: 'simple',
  output_format_json_quote_64bit_integers: 0,
  output_format_json_quote_64bit_floats: 0,
  output_format_json_quote_denormals: 0,
  output_format_json_quote_decimals: 0,
  output_format_json_named_tuples_as_objects: 1,
  output_format_json_skip_null_value_in_named_tuples: 0,
  output_format_json_array_of_rows: 0,
  output_format_json_validate_utf8: 0,
  date_time_64_output_format_cut_trailing_zeros_align_to_groups_of_thousands: 0,
  bool_true_representation: 'true',
  bool_false_representation: 'false',
  // A failure has its status, not a row with its message.
  http_write_exception_in_output_format: 0,
}
