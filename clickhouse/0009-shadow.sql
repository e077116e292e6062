-- What a shadow policy would have decided of every event while one was set, and beside it what the
-- active policy did decide. A redelivered event is the same row again; should a scorer not have
-- known of a newer version of the shadow in time, the row by the newer one replaces the other.

create table if not exists shadow_decisions (
  tenant_id LowCardinality(String),
  received_at DateTime64(3, 'UTC') codec(Delta, ZSTD(1)),
  event_id String,
  position UInt64 codec(Delta, ZSTD(1)),
  device_id String,
  session_id String,
  user_id String,
  account_id String,
  platform LowCardinality(String),
  sdk_version LowCardinality(String),
  shadow_version UInt32,
  shadow_policy_hash LowCardinality(String),
  shadow_rasp_score UInt8,
  shadow_risk_score UInt8,
  shadow_action Enum8('ALLOW' = 0, 'REVIEW' = 1, 'BLOCK' = 2),
  shadow_flags Array(LowCardinality(String)),
  active_policy_version UInt32,
  active_policy_hash LowCardinality(String),
  active_rasp_score UInt8,
  active_risk_score UInt8,
  active_action Enum8('ALLOW' = 0, 'REVIEW' = 1, 'BLOCK' = 2),
  active_flags Array(LowCardinality(String)),
  index shadow_device_bloom device_id type bloom_filter(0.01) granularity 1,
  index shadow_user_bloom user_id type bloom_filter(0.01) granularity 1,
  index shadow_account_bloom account_id type bloom_filter(0.01) granularity 1
)
engine = ReplacingMergeTree(shadow_version)
partition by toYYYYMM(received_at)
order by (tenant_id, received_at, event_id);

create or replace view {analytics:Identifier}.shadow_decisions (
  tenant_id LowCardinality(String) comment 'The tenant.',
  received_at DateTime64(3, 'UTC') comment 'When the edge accepted the event.',
  device_id String comment 'The device.',
  session_id String comment 'The session, unique within its device.',
  user_id String comment 'The user that the client named; empty when none.',
  account_id String comment 'The account that the client named; empty when none.',
  event_id String comment 'The event.',
  platform LowCardinality(String) comment 'android, ios, ..., as the SDK says.',
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
  tenant_id, received_at, device_id, session_id, user_id, account_id, event_id, platform,
  sdk_version, shadow_version, shadow_policy_hash, shadow_rasp_score, shadow_risk_score,
  shadow_action, shadow_flags, active_policy_version, active_policy_hash, active_rasp_score,
  active_risk_score, active_action, active_flags
from shadow_decisions final
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment 'What the tenant''s shadow policy would have decided of every event while one was set, and what was decided: nobody was alerted by it. An alert is one per device, session and action. A repeat of the same bytes was decided when they first came. Cheap by tenant with time, and with device, user or account.';
