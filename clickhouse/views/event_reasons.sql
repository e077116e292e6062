create or replace view {analytics:Identifier}.event_reasons (
  tenant_id LowCardinality(String) comment 'The tenant.',
  received_at DateTime64(3, 'UTC') comment 'When the event was accepted.',
  device_id String comment 'The device.',
  session_id String comment 'The session, unique within its device.',
  user_id String comment 'The user that the client named; empty when none.',
  account_id String comment 'The account that the client named; empty when none.',
  event_id String comment 'The event.',
  rasp_score UInt8 comment 'The event''s score, 0 to 100.',
  rasp_action LowCardinality(String) comment 'ALLOW, REVIEW or BLOCK: what the score leads to.',
  policy_version UInt32 comment 'The version of the tenant''s policy that scored it.',
  code LowCardinality(String) comment 'The flag.',
  weight Float64 comment 'Its part of the score; an event''s weights add up to it.',
  signals Array(String) comment 'The signals that it was seen from, as category.signal, sorted.'
) as
select
  tenant_id, received_at, device_id, session_id, user_id, account_id, event_id, rasp_score,
  rasp_action, policy_version, reason.code as code, reason.weight as weight,
  reason.evidence.signals as signals
from telemetry final
array join JSONExtract(
  reasons, 'Array(Tuple(code String, weight Float64, evidence Tuple(signals Array(String))))'
) as reason
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment 'One row for every reason behind the score of an event. What an alert adds of the device''s past is in reasons. Cheap as events is.';
