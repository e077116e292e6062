-- Made from shared/io/analytics/analyst-access-store.ts by `npm run generate`: do not edit.
-- What a ClickHouse that keeps users needs once, for analysts of any number of tenants. The
-- console runs it by itself before it makes the first (di analysts create), as the user that it
-- signs in as, here `default`, and points the views at the reader.

create settings profile if not exists analytics_reader;

alter settings profile analytics_reader settings 
  ignore_data_skipping_indices = 'event_id_bloom,user_id_bloom,account_id_bloom,alert_device_bloom,alert_user_bloom,alert_id_bloom,delivery_device_bloom,delivery_user_bloom,delivery_alert_bloom,shadow_device_bloom,shadow_user_bloom,shadow_account_bloom,label_subject_bloom' const,
  apply_row_policy_after_final = 0 const,
  optimize_move_to_prewhere_if_final = 0 const,
  use_query_condition_cache = 0 const,
  compatibility = '' const,
  dialect = 'clickhouse' const,
  session_timezone = 'UTC' const,
  join_use_nulls = 0 const,
  group_by_use_nulls = 0 const,
  aggregate_functions_null_for_empty = 0 const,
  transform_null_in = 0 const,
  data_type_default_nullable = 0 const,
  cast_keep_nullable = 0 const,
  least_greatest_legacy_null_behavior = 0 const,
  empty_result_for_aggregation_by_empty_set = 0 const,
  empty_result_for_aggregation_by_constant_keys_on_empty_set = 1 const,
  prefer_column_name_to_alias = 0 const,
  enable_positional_arguments = 1 const,
  enable_global_with_statement = 1 const,
  enable_named_columns_in_function_tuple = 0 const,
  asterisk_include_alias_columns = 0 const,
  asterisk_include_materialized_columns = 0 const,
  union_default_mode = '' const,
  except_default_mode = 'ALL' const,
  intersect_default_mode = 'ALL' const,
  join_default_strictness = 'ALL' const,
  join_any_take_last_row = 0 const,
  any_join_distinct_right_table_keys = 0 const,
  count_distinct_implementation = 'uniqExact' const,
  decimal_check_overflow = 1 const,
  date_time_overflow_behavior = 'ignore' const,
  final = 0 const,
  limit = 0 const,
  offset = 0 const,
  apply_deleted_mask = 1 const,
  distributed_group_by_no_merge = 0 const,
  skip_unavailable_shards = 0 const,
  use_query_cache = 0 const,
  partial_result_on_first_cancel = 0 const,
  read_overflow_mode = 'throw' const,
  read_overflow_mode_leaf = 'throw' const,
  group_by_overflow_mode = 'throw' const,
  sort_overflow_mode = 'throw' const,
  result_overflow_mode = 'throw' const,
  timeout_overflow_mode = 'throw' const,
  timeout_overflow_mode_leaf = 'throw' const,
  set_overflow_mode = 'throw' const,
  join_overflow_mode = 'throw' const,
  transfer_overflow_mode = 'throw' const,
  distinct_overflow_mode = 'throw' const;

create user if not exists analytics_reader
  identified with sha256_hash by '0000000000000000000000000000000000000000000000000000000000000000' host none
  settings profile 'analytics_reader';

grant select on `device_intelligence`.telemetry to analytics_reader;

grant select on `device_intelligence`.sessions to analytics_reader;

grant select on `device_intelligence`.devices to analytics_reader;

grant select on `device_intelligence`.user_devices to analytics_reader;

grant select on `device_intelligence`.decisions to analytics_reader;

grant select on `device_intelligence`.alerts_replica to analytics_reader;

grant select on `device_intelligence`.deliveries_replica to analytics_reader;

grant select on `device_intelligence`.labels_replica to analytics_reader;

grant select on `device_intelligence`.reconciliation_entries to analytics_reader;

grant select on `device_intelligence`.reconciliation_accepted to analytics_reader;

grant select on `device_intelligence`.reconciliation_expected_alerts to analytics_reader;

grant select on `device_intelligence`.reconciliation_cutoffs to analytics_reader;

grant select on `device_intelligence`.prevalence_spikes to analytics_reader;

grant select on `device_intelligence`.shadow_decisions to analytics_reader;

grant select on `device_intelligence`.installs to analytics_reader;

grant select on `device_intelligence`.replays to analytics_reader;

grant select on `device_intelligence`.phone_links to analytics_reader;

grant select on `device_intelligence`.phone_corrections_replica to analytics_reader;

grant select on `device_intelligence`.replication_rounds to analytics_reader;

grant select on `device_intelligence`.reconciliation_watermarks to analytics_reader;

grant select on `device_intelligence`.reconciliation_start to analytics_reader;

grant select on `device_intelligence`.prevalence_checks to analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.telemetry to analytics_reader;

alter row policy of_tenant on `device_intelligence`.telemetry
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.telemetry
  for select using 1 to all except analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.sessions to analytics_reader;

alter row policy of_tenant on `device_intelligence`.sessions
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.sessions
  for select using 1 to all except analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.devices to analytics_reader;

alter row policy of_tenant on `device_intelligence`.devices
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.devices
  for select using 1 to all except analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.user_devices to analytics_reader;

alter row policy of_tenant on `device_intelligence`.user_devices
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.user_devices
  for select using 1 to all except analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.decisions to analytics_reader;

alter row policy of_tenant on `device_intelligence`.decisions
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.decisions
  for select using 1 to all except analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.alerts_replica to analytics_reader;

alter row policy of_tenant on `device_intelligence`.alerts_replica
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.alerts_replica
  for select using 1 to all except analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.deliveries_replica to analytics_reader;

alter row policy of_tenant on `device_intelligence`.deliveries_replica
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.deliveries_replica
  for select using 1 to all except analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.labels_replica to analytics_reader;

alter row policy of_tenant on `device_intelligence`.labels_replica
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.labels_replica
  for select using 1 to all except analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.reconciliation_entries to analytics_reader;

alter row policy of_tenant on `device_intelligence`.reconciliation_entries
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.reconciliation_entries
  for select using 1 to all except analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.reconciliation_accepted to analytics_reader;

alter row policy of_tenant on `device_intelligence`.reconciliation_accepted
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.reconciliation_accepted
  for select using 1 to all except analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.reconciliation_expected_alerts to analytics_reader;

alter row policy of_tenant on `device_intelligence`.reconciliation_expected_alerts
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.reconciliation_expected_alerts
  for select using 1 to all except analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.reconciliation_cutoffs to analytics_reader;

alter row policy of_tenant on `device_intelligence`.reconciliation_cutoffs
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.reconciliation_cutoffs
  for select using 1 to all except analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.prevalence_spikes to analytics_reader;

alter row policy of_tenant on `device_intelligence`.prevalence_spikes
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.prevalence_spikes
  for select using 1 to all except analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.shadow_decisions to analytics_reader;

alter row policy of_tenant on `device_intelligence`.shadow_decisions
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.shadow_decisions
  for select using 1 to all except analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.installs to analytics_reader;

alter row policy of_tenant on `device_intelligence`.installs
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.installs
  for select using 1 to all except analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.replays to analytics_reader;

alter row policy of_tenant on `device_intelligence`.replays
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.replays
  for select using 1 to all except analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.phone_links to analytics_reader;

alter row policy of_tenant on `device_intelligence`.phone_links
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.phone_links
  for select using 1 to all except analytics_reader;

create row policy if not exists of_tenant on `device_intelligence`.phone_corrections_replica to analytics_reader;

alter row policy of_tenant on `device_intelligence`.phone_corrections_replica
  for select using currentUser() in ('default', 'scorer', 'api', 'console') or tenant_id = splitByChar('.', currentUser())[2] to analytics_reader;

create row policy if not exists of_service on `device_intelligence`.phone_corrections_replica
  for select using 1 to all except analytics_reader;

create settings profile if not exists analyst;

alter settings profile analyst settings 
  readonly = 1,
  allow_ddl = 0,
  allow_introspection_functions = 0,
  max_threads = 1 min 1 max 64 changeable_in_readonly,
  max_execution_time = 30 min 1 max 60 changeable_in_readonly,
  max_memory_usage = 1073741824,
  max_memory_usage_for_user = 2147483648,
  max_temporary_data_on_disk_size_for_query = 2147483648,
  max_temporary_data_on_disk_size_for_user = 4294967296,
  max_rows_to_read = 1000000000,
  max_result_rows = 1000000 min 1 max 1000000 changeable_in_readonly,
  max_result_bytes = 268435456,
  http_wait_end_of_query = 1,
  max_block_size = 1024 min 1 max 1024 changeable_in_readonly,
  function_range_max_elements_in_block = 1000000,
  os_threads_nice_value_query = 15,
  workload = 'analysts',
  max_concurrent_queries_for_user = 4,
  use_query_cache = 0,
  use_query_condition_cache = 0,
  function_sleep_max_microseconds_per_block = 100000,
  allow_suspicious_types_in_group_by = 1,
  allow_suspicious_types_in_order_by = 1,
  cancel_http_readonly_queries_on_client_close = 1 changeable_in_readonly,
  compatibility = '',
  dialect = 'clickhouse',
  session_timezone = 'UTC' changeable_in_readonly,
  join_use_nulls = 0 changeable_in_readonly,
  group_by_use_nulls = 0 changeable_in_readonly,
  aggregate_functions_null_for_empty = 0,
  transform_null_in = 0,
  data_type_default_nullable = 0,
  cast_keep_nullable = 0,
  least_greatest_legacy_null_behavior = 0,
  empty_result_for_aggregation_by_empty_set = 0,
  empty_result_for_aggregation_by_constant_keys_on_empty_set = 1,
  prefer_column_name_to_alias = 0,
  enable_positional_arguments = 1,
  enable_global_with_statement = 1,
  enable_named_columns_in_function_tuple = 0,
  asterisk_include_alias_columns = 0,
  asterisk_include_materialized_columns = 0,
  union_default_mode = '',
  except_default_mode = 'ALL',
  intersect_default_mode = 'ALL',
  join_default_strictness = 'ALL',
  join_any_take_last_row = 0,
  any_join_distinct_right_table_keys = 0,
  count_distinct_implementation = 'uniqExact',
  decimal_check_overflow = 1,
  date_time_overflow_behavior = 'ignore',
  final = 0,
  limit = 0,
  offset = 0,
  apply_deleted_mask = 1,
  optimize_move_to_prewhere_if_final = 0,
  distributed_group_by_no_merge = 0,
  skip_unavailable_shards = 0,
  partial_result_on_first_cancel = 0,
  read_overflow_mode = 'throw',
  read_overflow_mode_leaf = 'throw',
  group_by_overflow_mode = 'throw',
  sort_overflow_mode = 'throw',
  result_overflow_mode = 'throw' changeable_in_readonly,
  timeout_overflow_mode = 'throw',
  timeout_overflow_mode_leaf = 'throw',
  set_overflow_mode = 'throw',
  join_overflow_mode = 'throw',
  transfer_overflow_mode = 'throw',
  distinct_overflow_mode = 'throw',
  date_time_input_format changeable_in_readonly,
  date_time_output_format changeable_in_readonly,
  enable_http_compression changeable_in_readonly,
  extremes changeable_in_readonly,
  http_headers_progress_interval_ms min 100 max 3600000 changeable_in_readonly,
  http_write_exception_in_output_format changeable_in_readonly,
  http_zlib_compression_level min 1 max 6 changeable_in_readonly,
  log_comment changeable_in_readonly,
  output_format_arrow_string_as_string changeable_in_readonly,
  output_format_binary_encode_types_in_binary_format changeable_in_readonly,
  output_format_binary_write_json_as_string changeable_in_readonly,
  output_format_json_array_of_rows changeable_in_readonly,
  output_format_json_named_tuples_as_objects changeable_in_readonly,
  output_format_json_quote_64bit_floats changeable_in_readonly,
  output_format_json_quote_64bit_integers changeable_in_readonly,
  output_format_json_quote_decimals changeable_in_readonly,
  output_format_json_quote_denormals changeable_in_readonly,
  output_format_json_validate_utf8 changeable_in_readonly,
  output_format_native_encode_types_in_binary_format changeable_in_readonly,
  output_format_native_use_flattened_dynamic_and_json_serialization changeable_in_readonly,
  output_format_native_write_json_as_string changeable_in_readonly,
  send_progress_in_http_headers changeable_in_readonly;

create role if not exists analyst settings profile 'analyst';

GRANT SELECT ON `analytics`.* to analyst;

create quota if not exists analyst keyed by user_name
  for interval 60 second max queries = 600, execution_time = 60,
  for interval 86400 second max queries = 50000, execution_time = 7200
  to analyst;

GRANT SELECT ON information_schema.* to analyst;

GRANT SELECT ON INFORMATION_SCHEMA.* to analyst;

GRANT SELECT ON system.parts to analyst;

-- By hand, where all analysts together must leave processors to others. The console does not run
-- these: a server has one tree of workloads, which may be another one.
--
-- What ends a query is looked at between blocks of rows. A function that works on one huge value,
-- such as countMatches(repeat('a', 300000), 'a.*b|a'), goes on after max_execution_time, after its
-- client has left and after KILL QUERY. Until it is done it takes one thread, and one of the four
-- queries of its user; at a low priority where the server has CAP_SYS_NICE.

create resource if not exists cpu (master thread, worker thread);

create workload if not exists `all`;

create workload if not exists analysts in `all` settings max_concurrent_threads = 4;
