-- Decisions are a function of the stream's order: every event has its place in it, and a count for
-- one event is over those before it. So the activity table knows the position too, and beside
-- devices it now answers for users (on how many devices) and for sessions (likewise).

alter table telemetry
  -- Rises in the order of the stream that brought the event; 0 for rows from before that was kept.
  add column if not exists position UInt64 codec(Delta, ZSTD(1)),
  -- A bit for each category, in the order of the interface, that has at least one measured signal.
  add column if not exists filled_categories UInt8,
  -- category.signal of what the catalog did not know, at most 32.
  add column if not exists unknown_signals Array(LowCardinality(String)),
  -- A bit for each watched signal that was detected, and for each that was found clean.
  add column if not exists detected_bits UInt64,
  add column if not exists clean_bits UInt64;

drop view if exists activity_of_telemetry;

drop table if exists activity;

-- One narrow row per event and key: its device, its user, its account, its session. Keyed by hashes,
-- because it is read for thousands of keys at once and only distinctness matters. A redelivered
-- event is the same row again; a client's retry of the same bytes is a later row of the same
-- event_hash, which is how it is recognised. Columns that a kind of key does not need are 0.
create table activity (
  tenant_id LowCardinality(String),
  -- Begins the SHA-256 of the kind and the id: whoever asks computes it too.
  key_hash UInt64,
  position UInt64 codec(Delta, LZ4),
  received_at DateTime64(3, 'UTC') codec(Delta, LZ4),
  event_hash UInt64,
  -- Of a device.
  session_hash UInt64,
  user_hash UInt64,
  account_hash UInt64,
  platform_hash UInt64,
  detected_bits UInt64,
  clean_bits UInt64,
  -- Of a user, or of a session.
  user_device_hash UInt64,
  session_device_hash UInt64
)
engine = ReplacingMergeTree
partition by toYYYYMM(received_at)
order by (tenant_id, key_hash, position, event_hash)
-- The longest window of a policy is 30 days; five more are for events that wait out an outage.
ttl toDateTime(received_at) + interval 35 day
settings
  ttl_only_drop_parts = 1,
  -- A key's rows are a few granules, a granule a few KB to read and decompress.
  index_granularity = 256,
  min_compress_block_size = 2048,
  max_compress_block_size = 8192;

create materialized view activity_of_telemetry to activity as
select
  tenant_id,
  reinterpretAsUInt64(SHA256(concat(key.1, ' ', key.2))) as key_hash,
  position,
  received_at,
  reinterpretAsUInt64(SHA256(event_id)) as event_hash,
  if(key.1 = 'device', sipHash64(session_id), 0) as session_hash,
  if(key.1 = 'device' and user_id != '', sipHash64(user_id), 0) as user_hash,
  if(key.1 = 'device' and account_id != '', sipHash64(account_id), 0) as account_hash,
  if(key.1 = 'device', sipHash64(lower(platform)), 0) as platform_hash,
  if(key.1 = 'device', detected_bits, 0) as detected_bits,
  if(key.1 = 'device', clean_bits, 0) as clean_bits,
  if(key.1 = 'user', sipHash64(device_id), 0) as user_device_hash,
  if(key.1 = 'session', sipHash64(device_id), 0) as session_device_hash
from telemetry
array join arrayConcat(
  [('device', device_id), ('session', session_id)],
  arrayMap(
    id -> ('user', id),
    arrayDistinct(arrayFilter(id -> id != '', [user_id, account_id]))
  )
) as key;

-- What a running stack had seen stays counted.
insert into activity
select
  tenant_id,
  reinterpretAsUInt64(SHA256(concat(key.1, ' ', key.2))) as key_hash,
  position,
  received_at,
  reinterpretAsUInt64(SHA256(event_id)) as event_hash,
  if(key.1 = 'device', sipHash64(session_id), 0) as session_hash,
  if(key.1 = 'device' and user_id != '', sipHash64(user_id), 0) as user_hash,
  if(key.1 = 'device' and account_id != '', sipHash64(account_id), 0) as account_hash,
  if(key.1 = 'device', sipHash64(lower(platform)), 0) as platform_hash,
  0 as detected_bits,
  0 as clean_bits,
  if(key.1 = 'user', sipHash64(device_id), 0) as user_device_hash,
  if(key.1 = 'session', sipHash64(device_id), 0) as session_device_hash
from telemetry
array join arrayConcat(
  [('device', device_id), ('session', session_id)],
  arrayMap(
    id -> ('user', id),
    arrayDistinct(arrayFilter(id -> id != '', [user_id, account_id]))
  )
) as key
where received_at > now() - interval 35 day;
