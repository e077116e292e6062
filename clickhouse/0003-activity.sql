-- When which session and which users were seen on a device: what velocity rules count, exactly as
-- of an event's own time. One narrow row per event, keyed by hashes, because it is read for
-- thousands of devices at once and only distinctness matters. A redelivered event is the same row
-- again; a client's retry of the same bytes is a later row of the same event_hash, which is how it
-- is recognised.

create table if not exists activity (
  tenant_id LowCardinality(String),
  -- Begins the SHA-256 of the id: whoever asks computes it too.
  device_hash UInt64,
  received_at DateTime64(3, 'UTC') codec(Delta, LZ4),
  event_hash UInt64,
  session_hash UInt64,
  -- 0 when there is none.
  user_hash UInt64,
  account_hash UInt64
)
engine = ReplacingMergeTree
partition by toYYYYMM(received_at)
order by (tenant_id, device_hash, received_at, event_hash)
-- The longest window of a policy is 30 days; five more are for events that wait out an outage.
ttl toDateTime(received_at) + interval 35 day
settings
  ttl_only_drop_parts = 1,
  -- A key's rows are a few granules, a granule a few KB to read and decompress.
  index_granularity = 256,
  min_compress_block_size = 2048,
  max_compress_block_size = 8192;

create materialized view if not exists activity_of_telemetry to activity as
select
  tenant_id,
  reinterpretAsUInt64(SHA256(device_id)) as device_hash,
  received_at,
  reinterpretAsUInt64(SHA256(event_id)) as event_hash,
  sipHash64(session_id) as session_hash,
  if(user_id = '', 0, sipHash64(user_id)) as user_hash,
  if(account_id = '', 0, sipHash64(account_id)) as account_hash
from telemetry;
