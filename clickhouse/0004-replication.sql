-- Replicas of alerts with their dispositions and of deliveries, written by replication from
-- Postgres. A row replaces the one of an earlier round.

create table if not exists alerts_replica (
  tenant_id LowCardinality(String),
  created_at DateTime64(3, 'UTC'),
  alert_id String,
  seq UInt64,
  device_id String,
  session_id String,
  -- Empty when the event named none.
  user_id String,
  event_id String,
  action LowCardinality(String),
  risk_score UInt8,
  rasp_score UInt8,
  reason_codes Array(LowCardinality(String)),
  reason_weights Array(Float64),
  -- JSON text.
  reason_evidence Array(String),
  policy_version UInt32,
  disposition LowCardinality(String),
  disposition_at Array(DateTime64(3, 'UTC')),
  disposition_from Array(LowCardinality(String)),
  disposition_to Array(LowCardinality(String)),
  disposition_actor Array(String),
  disposition_note Array(String),
  round UInt64,
  -- 1: removed from Postgres; only the key is set.
  removed UInt8,
  index alert_device_bloom device_id type bloom_filter(0.01) granularity 1,
  index alert_user_bloom user_id type bloom_filter(0.01) granularity 1,
  index alert_id_bloom alert_id type bloom_filter(0.01) granularity 1
)
engine = ReplacingMergeTree(round, removed)
order by (tenant_id, created_at, alert_id)
settings index_granularity = 1024;

create table if not exists deliveries_replica (
  tenant_id LowCardinality(String),
  created_at DateTime64(3, 'UTC'),
  delivery_id String,
  -- Empty for a test, as are the next three.
  alert_id String,
  device_id String,
  user_id String,
  event_id String,
  event LowCardinality(String),
  state LowCardinality(String),
  reason LowCardinality(String),
  ended_at Nullable(DateTime64(3, 'UTC')),
  attempt_at Array(DateTime64(3, 'UTC')),
  attempt_duration_ms Array(UInt32),
  attempt_status Array(Nullable(UInt16)),
  attempt_error_kind Array(LowCardinality(String)),
  round UInt64,
  removed UInt8,
  index delivery_device_bloom device_id type bloom_filter(0.01) granularity 1,
  index delivery_user_bloom user_id type bloom_filter(0.01) granularity 1,
  index delivery_alert_bloom alert_id type bloom_filter(0.01) granularity 1
)
engine = ReplacingMergeTree(round, removed)
order by (tenant_id, created_at, delivery_id)
settings index_granularity = 1024;

-- One row, replaced by each replication round: the instant whose commits are all replicated.
create table if not exists replication_rounds (
  singleton UInt8,
  round UInt64,
  replicated_at DateTime64(3, 'UTC')
)
engine = ReplacingMergeTree(round)
order by singleton;
