-- Every accepted event with everything that is known of it. Ingest is at least once: the same event
-- may be inserted again by a redelivered message (the same row), or arrive again as a client's
-- retry of the same bytes (the same event_id, received later). Merges keep the row received first;
-- a reader that cannot wait for a merge says FINAL.

create table if not exists telemetry (
  tenant_id LowCardinality(String),
  device_id String,
  session_id String,
  event_id String,
  received_at DateTime64(3, 'UTC') codec(Delta, ZSTD(1)),
  -- The client's clock: kept, never trusted.
  occurred_at Nullable(DateTime64(3, 'UTC')),
  -- Empty when the client named none; an id has at least one character.
  user_id String,
  account_id String,
  sdk_version LowCardinality(String),
  platform LowCardinality(String),
  batch_type LowCardinality(String),
  -- The client's own verdict: advisory.
  client_score Float64,
  client_action LowCardinality(String),
  client_flags Array(LowCardinality(String)),
  -- The server's verdict, made at the edge.
  rasp_score UInt8,
  rasp_action Enum8('ALLOW' = 0, 'REVIEW' = 1, 'BLOCK' = 2),
  flags Array(LowCardinality(String)),
  -- JSON text: [{"code","weight","evidence"}].
  reasons String codec(ZSTD(1)),
  policy_version UInt32,
  policy_hash LowCardinality(String),
  epoch UInt64,
  -- Read signals.root.su_binary directly. 256 paths hold the catalog and what SDKs add to it; rarer
  -- ones share a column, as do values of a third type. An array of anything but plain values of one
  -- type is its JSON text here. {} with signals_refused where the engine could not hold it at all.
  signals JSON(max_dynamic_paths = 256, max_dynamic_types = 2),
  signals_refused Bool,
  -- The submission, byte for byte.
  body String codec(ZSTD(1)),
  row_version UInt64 materialized 18446744073709551615 - toUnixTimestamp64Milli(received_at),
  index event_id_bloom event_id type bloom_filter(0.01) granularity 1,
  index user_id_bloom user_id type bloom_filter(0.01) granularity 1
)
engine = ReplacingMergeTree(row_version)
partition by toYYYYMM(received_at)
order by (tenant_id, device_id, session_id, event_id)
settings
  -- Every path of signals is up to ten files of a wide part, all of them open in a merge: only what
  -- is large anyway is worth that.
  min_bytes_for_wide_part = 1073741824;
