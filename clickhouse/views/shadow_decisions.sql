create or replace view {analytics:Identifier}.shadow_decisions (
  tenant_id LowCardinality(String) comment 'The tenant.',
  received_at DateTime64(3, 'UTC') comment 'When the edge accepted the event.',
  device_id String comment 'The device.',
  session_id String comment 'The session, unique within its device.',
  user_id String comment 'The user that the client named; empty when none.',
  account_id String comment 'The account that the client named; empty when none.',
  event_id String comment 'The event.',
  platform LowCardinality(String) comment 'android, ios or another, in lower case.',
  sdk_version LowCardinality(String) comment 'The SDK''s version.',
  shadow_version UInt32 comment 'The version of the tenant''s shadow policy that decided.',
  shadow_policy_hash LowCardinality(String) comment 'The content address of that policy.',
  shadow_rasp_score UInt8 comment 'What the shadow makes of the signals, 0 to 100.',
  shadow_risk_score UInt8
    comment 'The same raised by what is known of the device and by the shadow''s rules, 0 to 100.',
  shadow_action LowCardinality(String) comment 'ALLOW, REVIEW or BLOCK: what it would have been.',
  shadow_flags Array(LowCardinality(String)) comment 'The codes of the reasons for it, heaviest first.',
  active_policy_version UInt32 comment 'The version of the active policy that decided.',
  active_policy_hash LowCardinality(String) comment 'The content address of that policy.',
  active_rasp_score UInt8 comment 'The event''s score, as the edge answered it.',
  active_risk_score UInt8 comment 'The event''s risk score, as an alert would have it.',
  active_action LowCardinality(String) comment 'ALLOW, REVIEW or BLOCK: what was decided.',
  active_flags Array(LowCardinality(String)) comment 'The codes of the reasons for it, heaviest first.'
) as
select
  tenant_id, received_at, device_id, session_id, user_id, account_id, event_id,
  {{platform}} as platform,
  sdk_version, shadow_version, shadow_policy_hash, shadow_rasp_score, shadow_risk_score,
  shadow_action, shadow_flags, active_policy_version, active_policy_hash, active_rasp_score,
  active_risk_score, active_action, active_flags
from shadow_decisions final
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment 'What the tenant''s shadow policy decided for every event, beside the actual decision; it raises no alerts. An alert is one per device, session and action. A repeat of the same bytes was decided when they first came. Cheap by tenant with time, and with device, user or account.';
