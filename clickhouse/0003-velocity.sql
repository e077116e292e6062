-- What the scorer reads to compute risk features: recent activity of devices, users and sessions,
-- and the usual behaviour of SDK versions.

-- One narrow row per event and key: its device, its user, its account, its session. Keys are
-- hashes, because thousands are read at once and only distinctness matters. A redelivered event is
-- the same row again; a client's retry of the same bytes has the same event hash and a later stream
-- offset.
--
-- A query costs one opened column per column and key, so the facts are packed into one column. The
-- aliases unpack it.
create table if not exists activity (
  tenant_id LowCardinality(String),
  -- The first 8 bytes of SHA-256 of the kind and the id; the scorer computes the same.
  key_hash UInt64,
  stream_offset UInt64 codec(Delta, LZ4),
  received_at DateTime64(3, 'UTC') codec(Delta, LZ4),
  event_hash UInt64,
  -- Ten numbers of 64 bits, little-endian; 0 where the kind of key has no such fact.
  packed_facts FixedString(80),
  -- Of a device.
  session_hash UInt64 alias reinterpretAsUInt64(substring(packed_facts, 1, 8)),
  user_hash UInt64 alias reinterpretAsUInt64(substring(packed_facts, 9, 8)),
  account_hash UInt64 alias reinterpretAsUInt64(substring(packed_facts, 17, 8)),
  platform_hash UInt64 alias reinterpretAsUInt64(substring(packed_facts, 25, 8)),
  detected_bits UInt64 alias reinterpretAsUInt64(substring(packed_facts, 33, 8)),
  clean_bits UInt64 alias reinterpretAsUInt64(substring(packed_facts, 41, 8)),
  -- Of a user.
  user_device_hash UInt64 alias reinterpretAsUInt64(substring(packed_facts, 49, 8)),
  -- Of a session.
  session_device_hash UInt64 alias reinterpretAsUInt64(substring(packed_facts, 57, 8)),
  -- Of every key: event_hash and received_at again, so that a query needs no further column.
  packed_event_hash UInt64 alias reinterpretAsUInt64(substring(packed_facts, 65, 8)),
  received_at_ms Int64 alias reinterpretAsInt64(substring(packed_facts, 73, 8))
)
engine = ReplacingMergeTree
partition by toYYYYMM(received_at)
primary key (tenant_id, key_hash)
order by (tenant_id, key_hash, stream_offset, event_hash)
-- The longest window of a policy is 30 days; five more cover events that wait out an outage.
ttl toDateTime(received_at) + interval 35 day
settings
  ttl_only_drop_parts = 1,
  -- A key's rows are in few granules, and a granule is a few KB to read and decompress.
  index_granularity = 256,
  min_compress_block_size = 2048,
  max_compress_block_size = 8192,
  -- Larger parts are wide: the scorer reads four columns of thousands of keys, which takes up to
  -- two fifths longer from compact parts.
  min_bytes_for_wide_part = 524288;

-- A placeholder id is no identity: it does not count as a user of a device, nor as a device of a
-- user or session. Rows of a user or session may belong on another shard than those of their device,
-- so the view writes to the table of all shards ({all:Identifier}; the migration fills it in).
create materialized view if not exists activity_of_telemetry to {all:Identifier}.activity as
select
  tenant_id,
  reinterpretAsUInt64(SHA256(concat(key.1, ' ', key.2))) as key_hash,
  stream_offset,
  received_at,
  reinterpretAsUInt64(SHA256(event_id)) as event_hash,
  toFixedString(
    concat(
      toFixedString(
        multiIf(
          key.1 = 'device',
          concat(
            reinterpretAsFixedString(sipHash64(session_id)),
            reinterpretAsFixedString(
              if(user_id = '' or has(placeholder_ids, 'user_id'), 0, sipHash64(user_id))
            ),
            reinterpretAsFixedString(
              if(account_id = '' or has(placeholder_ids, 'account_id'), 0, sipHash64(account_id))
            ),
            reinterpretAsFixedString(sipHash64(lower(platform))),
            reinterpretAsFixedString(detected_bits),
            reinterpretAsFixedString(clean_bits)
          ),
          key.1 = 'user',
          concat(
            repeat('\0', 48),
            reinterpretAsFixedString(if(has(placeholder_ids, 'device_id'), 0, sipHash64(device_id)))
          ),
          concat(
            repeat('\0', 56),
            reinterpretAsFixedString(if(has(placeholder_ids, 'device_id'), 0, sipHash64(device_id)))
          )
        ),
        64
      ),
      reinterpretAsFixedString(event_hash),
      reinterpretAsFixedString(toUnixTimestamp64Milli(received_at))
    ),
    80
  ) as packed_facts
from telemetry
array join arrayConcat(
  [('device', device_id), ('session', session_id)],
  arrayMap(
    id -> ('user', id),
    arrayDistinct(arrayFilter(id -> id != '', [user_id, account_id]))
  )
) as key;

-- Per SDK version and hour: how many devices were seen, and how many of them sent a category of
-- signals empty at least once. Where hardly any device of a version leaves a category empty, an
-- empty one was stripped. Counting devices that ever sent it empty keeps an SDK that omits
-- categories in some of its batches unsuspicious.
--
-- Devices are positions in a bitmap of 65,536 by the hash of their id, so events that are inserted
-- again change nothing and a state is at most 8 KB. (uniqCombined is smaller, but its result
-- depends on duplicates where its representation changes.) Reading corrects for devices that share
-- a position.
--
-- Versions and platforms are chosen by clients. A hostile client can add rows of some hundred
-- bytes, among its own tenant's only, for 8 days: 24 hours are read, and five days may wait out an
-- outage.
create table if not exists sdk_baselines (
  tenant_id LowCardinality(String),
  sdk_version String,
  platform String,
  -- By the clock of the edge.
  hour DateTime('UTC'),
  devices AggregateFunction(groupBitmap, UInt16),
  -- Of these, the devices that sent the category empty at least once.
  empty_root AggregateFunction(groupBitmap, UInt16),
  empty_emulator AggregateFunction(groupBitmap, UInt16),
  empty_debugger AggregateFunction(groupBitmap, UInt16),
  empty_tamper AggregateFunction(groupBitmap, UInt16),
  empty_ecosystem AggregateFunction(groupBitmap, UInt16),
  empty_network AggregateFunction(groupBitmap, UInt16)
)
engine = AggregatingMergeTree
order by (tenant_id, sdk_version, platform, hour)
ttl hour + interval 8 day
-- Reads are by key: small blocks.
settings index_granularity = 256, min_compress_block_size = 4096, max_compress_block_size = 16384;

create materialized view if not exists sdk_baselines_of_telemetry to sdk_baselines as
select
  tenant_id,
  sdk_version,
  platform,
  toStartOfHour(received_at) as hour,
  groupBitmapState(place) as devices,
  groupBitmapStateIf(place, not bitTest(filled_categories, 0)) as empty_root,
  groupBitmapStateIf(place, not bitTest(filled_categories, 1)) as empty_emulator,
  groupBitmapStateIf(place, not bitTest(filled_categories, 2)) as empty_debugger,
  groupBitmapStateIf(place, not bitTest(filled_categories, 3)) as empty_tamper,
  groupBitmapStateIf(place, not bitTest(filled_categories, 4)) as empty_ecosystem,
  groupBitmapStateIf(place, not bitTest(filled_categories, 5)) as empty_network
from (
  select
    tenant_id,
    sdk_version,
    platform,
    received_at,
    filled_categories,
    toUInt16(bitAnd(sipHash64(device_id), 65535)) as place
  from telemetry
)
group by tenant_id, sdk_version, platform, hour;
