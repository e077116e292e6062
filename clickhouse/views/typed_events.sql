create or replace view {analytics:Identifier}.typed_events (
  tenant_id LowCardinality(String) comment 'The tenant.',
  received_at DateTime64(3, 'UTC') comment 'When the edge accepted it, by the edge''s clock.',
  device_id String comment 'The device.',
  session_id String comment 'The session, unique within its device.',
  user_id String comment 'The user that the client named; empty when none.',
  account_id String comment 'The account that the client named; empty when none.',
  event_id String comment 'The event: the same bytes have the same id.',
  platform LowCardinality(String) comment 'android, ios or another, in lower case.',
  sdk_version LowCardinality(String) comment 'The SDK''s version.',
  {{optional_columns}},
  rasp_score UInt8 comment 'The server''s score, 0 to 100.',
  rasp_action LowCardinality(String) comment 'ALLOW, REVIEW or BLOCK: what the score leads to.',
  flags Array(LowCardinality(String)) comment 'The codes of the reasons behind the score.',
  policy_version UInt32 comment 'The version of the tenant''s policy that scored it.',
  {{signal_columns}},
  {{decided_columns}},
  {{server_signal_columns}}
) as
with {{decided_bits}} as decided_bits
select
  tenant_id,
  received_at,
  device_id,
  session_id,
  user_id,
  account_id,
  event_id,
  {{platform}} as platform,
  sdk_version,
  {{optional_values}},
  rasp_score,
  rasp_action,
  flags,
  policy_version,
  {{signal_values}},
  {{decided_values}},
  {{server_signal_values}}
from telemetry final
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment 'Every accepted event once, with a typed column for every signal of the catalog, named as in events: signals.root.su_binary, server_signals.attestation.verified. A signal that was not measured is null, a list is empty. Name the columns that you need: all of them are many. Cheap as events is.';
