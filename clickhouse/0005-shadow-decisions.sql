-- What a shadow policy decides for every event, beside what the active policy decided. A
-- redelivered event is the same row again; a row by a newer version of the shadow replaces one by
-- an older version.

create table if not exists shadow_decisions (
  tenant_id LowCardinality(String),
  received_at DateTime64(3, 'UTC') codec(Delta, ZSTD(1)),
  event_id String,
  stream_offset UInt64 codec(Delta, ZSTD(1)),
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
