-- Phones: which installs are on one, as it was decided at the first event of each with traits.

-- One row for each install. A decision is a function of the rows of `identity_keys` before it, so
-- whoever repeats it writes the same row; a merge keeps the first. Scorers write it before they
-- acknowledge the event. All rows of a tenant are on one shard, with those of `identity_keys`.
create table if not exists phone_links (
  tenant_id LowCardinality(String),
  device_id String,
  -- Its own, unless it is linked.
  phone_id String,
  kind Enum8('first' = 0, 'linked' = 1, 'possible' = 2),
  -- The phone that it may be on, too uncertain to count; of a linked install, what its phone's first
  -- install has there. Empty without one.
  possible_phone_id String,
  possible_confidence Float32,
  -- Of being on `phone_id`, or on `possible_phone_id` where that counts nowhere; 1 of the first.
  confidence Float32,
  -- JSON text: [{"field","level","weight","holders"}].
  evidence String codec(ZSTD(1)),
  -- Whether its identifiers are those of several phones; then later installs are not found by them.
  identifiers_shared Bool,
  -- Earlier installs of the phone, in the order of the stream: the first one and the latest others.
  installs Array(String),
  parameters_version UInt32,
  -- Of the install's first event with traits.
  stream_offset UInt64 codec(Delta, ZSTD(1)),
  received_at DateTime64(3, 'UTC') codec(Delta, ZSTD(1)),
  row_version UInt64 materialized 18446744073709551615 - stream_offset
)
engine = ReplacingMergeTree(row_version)
order by (tenant_id, device_id)
settings
  -- Read by key: small granules, in wide parts.
  index_granularity = 256,
  min_compress_block_size = 4096,
  max_compress_block_size = 16384,
  min_bytes_for_wide_part = 524288,
  merge_selector_base = 10;

-- The installs of a phone.
create table if not exists phone_installs (
  tenant_id LowCardinality(String),
  phone_id String,
  device_id String,
  kind Enum8('first' = 0, 'linked' = 1, 'possible' = 2),
  stream_offset UInt64 codec(Delta, ZSTD(1)),
  received_at DateTime64(3, 'UTC') codec(Delta, ZSTD(1)),
  row_version UInt64 materialized 18446744073709551615 - stream_offset
)
engine = ReplacingMergeTree(row_version)
order by (tenant_id, phone_id, device_id)
settings
  index_granularity = 256,
  min_compress_block_size = 4096,
  max_compress_block_size = 16384,
  min_bytes_for_wide_part = 524288,
  merge_selector_base = 10;

create materialized view if not exists phone_installs_of_links to phone_installs as
select tenant_id, phone_id, device_id, kind, stream_offset, received_at from phone_links;

-- One in 64 of the installs with a key, and under key 0 of all installs, by their hash: how many
-- have a value that thousands have, without reading all of them.
create table if not exists identity_samples (
  tenant_id LowCardinality(String),
  key_hash UInt64,
  -- sipHash64 of the device id.
  device_hash UInt64,
  stream_offset SimpleAggregateFunction(min, UInt64),
  last_seen_at SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
engine = AggregatingMergeTree
order by (tenant_id, key_hash, device_hash)
settings
  index_granularity = 256,
  min_compress_block_size = 4096,
  max_compress_block_size = 16384,
  min_bytes_for_wide_part = 524288;

create materialized view if not exists identity_samples_of_keys to identity_samples as
select
  tenant_id,
  key as key_hash,
  sipHash64(device_id) as device_hash,
  stream_offset,
  last_seen_at
from identity_keys
array join [identity_keys.key_hash, toUInt64(0)] as key
where sipHash64(device_id) % 64 = 0;
