-- Keys of installs: what tells that two installs may be on one phone. Scorers store them with the
-- events, so the keys of every earlier event are there when an install is decided on.

-- One row for each key of an install, with the first stream offset. The keys are those of `toKeys`,
-- and one of the install itself. Identifiers in them are keyed hashes. All rows of a tenant are on
-- one shard: phones with a key in common are read together.
create table if not exists identity_keys (
  tenant_id LowCardinality(String),
  -- The first 8 bytes of SHA-256 of the key.
  key_hash UInt64,
  device_id String,
  stream_offset SimpleAggregateFunction(min, UInt64),
  -- In the row of the install itself, its first event with traits. Other rows have the highest
  -- offset, which is no event's. A query with `final` has to read it whole: a member alone is not
  -- merged.
  first_event SimpleAggregateFunction(min, Tuple(
    stream_offset UInt64,
    received_at DateTime64(3, 'UTC'),
    -- JSON text.
    traits String
  )),
  -- To about a day: rows of an install that goes on are written again that often.
  last_seen_at SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
engine = AggregatingMergeTree
primary key (tenant_id, key_hash)
order by (tenant_id, key_hash, device_id)
settings
  -- Read by key: small granules, in wide parts.
  index_granularity = 256,
  min_compress_block_size = 4096,
  max_compress_block_size = 16384,
  min_bytes_for_wide_part = 524288;
