create or replace view {analytics:Identifier}.signals (
  tenant_id LowCardinality(String) comment 'The tenant.',
  received_at DateTime64(3, 'UTC') comment 'When the event was accepted.',
  device_id String comment 'The device.',
  session_id String comment 'The session, unique within its device.',
  user_id String comment 'The user that the client named; empty when none.',
  account_id String comment 'The account that the client named; empty when none.',
  event_id String comment 'The event.',
  platform LowCardinality(String) comment 'android, ios or another, in lower case.',
  sdk_version LowCardinality(String) comment 'The SDK''s version.',
  signal LowCardinality(String) comment 'category.signal',
  category LowCardinality(String) comment 'root, emulator, debugger, tamper, ecosystem, network; attestation and connection are what the service itself saw or verified.',
  {{optional_columns}}
) as
select
  tenant_id, received_at, device_id, session_id, user_id, account_id, event_id,
  {{platform}} as platform,
  sdk_version, signal, substringIndex(signal, '.', 1) as category, {{optional_values}}
from telemetry final
array join arrayConcat(detected_signals, detected_server_signals) as signal
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment 'One row for every boolean signal that was found detected in an event: true, or false for tamper.app_attest_valid. Known to the catalog or not. Cheap as events is.';
