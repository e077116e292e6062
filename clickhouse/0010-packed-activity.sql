-- The scorer reads `activity` for thousands of keys at once, each a granule of every part: what it
-- costs is the columns that are opened there and the bounds of granules that are compared. So what
-- a row tells of its event lies in one column, whose parts have the names that columns had; and the
-- primary key ends where what is asked for does.
--
-- May be broken off anywhere and run again: `activity` holds everything at any time, and reads the
-- same before and after it was packed. The first text filled it from `telemetry` instead:
-- replaces 96fb0ed21eb5ebb460927f5fb0b5f69764727d32ed28c859711adc779dc3d2e5
-- replaces c0932cd0fea0cf3a9fcc54cda86af7f6da706ddc9e8999dbf9bc09d4fd5b2417

drop table if exists activity_packed;

create table activity_packed (
  tenant_id LowCardinality(String),
  -- Begins the SHA-256 of the kind and the id: whoever asks computes it too.
  key_hash UInt64,
  position UInt64 codec(Delta, LZ4),
  received_at DateTime64(3, 'UTC') codec(Delta, LZ4),
  event_hash UInt64,
  -- Eight numbers of 64 bits, the least byte first; 0 for what a kind of key does not need.
  facts FixedString(64),
  -- Of a device.
  session_hash UInt64 alias reinterpretAsUInt64(substring(facts, 1, 8)),
  user_hash UInt64 alias reinterpretAsUInt64(substring(facts, 9, 8)),
  account_hash UInt64 alias reinterpretAsUInt64(substring(facts, 17, 8)),
  platform_hash UInt64 alias reinterpretAsUInt64(substring(facts, 25, 8)),
  detected_bits UInt64 alias reinterpretAsUInt64(substring(facts, 33, 8)),
  clean_bits UInt64 alias reinterpretAsUInt64(substring(facts, 41, 8)),
  -- Of a user, or of a session.
  user_device_hash UInt64 alias reinterpretAsUInt64(substring(facts, 49, 8)),
  session_device_hash UInt64 alias reinterpretAsUInt64(substring(facts, 57, 8))
)
engine = ReplacingMergeTree
partition by toYYYYMM(received_at)
primary key (tenant_id, key_hash)
order by (tenant_id, key_hash, position, event_hash)
-- The longest window of a policy is 30 days; five more are for events that wait out an outage.
ttl toDateTime(received_at) + interval 35 day
settings
  ttl_only_drop_parts = 1,
  -- A key's rows are a few granules, a granule a few KB to read and decompress.
  index_granularity = 256,
  min_compress_block_size = 2048,
  max_compress_block_size = 8192;

-- Not from telemetry: tenants may keep that for less than the 35 days that are counted, and it knows
-- an event and its retries as one.
insert into activity_packed (tenant_id, key_hash, position, received_at, event_hash, facts)
select
  tenant_id,
  key_hash,
  position,
  received_at,
  event_hash,
  toFixedString(
    concat(
      reinterpretAsFixedString(session_hash),
      reinterpretAsFixedString(user_hash),
      reinterpretAsFixedString(account_hash),
      reinterpretAsFixedString(platform_hash),
      reinterpretAsFixedString(detected_bits),
      reinterpretAsFixedString(clean_bits),
      reinterpretAsFixedString(user_device_hash),
      reinterpretAsFixedString(session_device_hash)
    ),
    64
  ) as facts
from activity;

drop view if exists activity_of_telemetry;

exchange tables activity and activity_packed;

create materialized view activity_of_telemetry to activity as
select
  tenant_id,
  reinterpretAsUInt64(SHA256(concat(key.1, ' ', key.2))) as key_hash,
  position,
  received_at,
  reinterpretAsUInt64(SHA256(event_id)) as event_hash,
  toFixedString(
    multiIf(
      key.1 = 'device',
      concat(
        reinterpretAsFixedString(sipHash64(session_id)),
        reinterpretAsFixedString(if(user_id = '', 0, sipHash64(user_id))),
        reinterpretAsFixedString(if(account_id = '', 0, sipHash64(account_id))),
        reinterpretAsFixedString(sipHash64(lower(platform))),
        reinterpretAsFixedString(detected_bits),
        reinterpretAsFixedString(clean_bits)
      ),
      key.1 = 'user',
      concat(repeat('\0', 48), reinterpretAsFixedString(sipHash64(device_id))),
      concat(repeat('\0', 56), reinterpretAsFixedString(sipHash64(device_id)))
    ),
    64
  ) as facts
from telemetry
array join arrayConcat(
  [('device', device_id), ('session', session_id)],
  arrayMap(
    id -> ('user', id),
    arrayDistinct(arrayFilter(id -> id != '', [user_id, account_id]))
  )
) as key;

-- What a scorer that was not stopped stored meanwhile.
insert into activity (tenant_id, key_hash, position, received_at, event_hash, facts)
select
  tenant_id,
  key_hash,
  position,
  received_at,
  event_hash,
  toFixedString(
    concat(
      reinterpretAsFixedString(session_hash),
      reinterpretAsFixedString(user_hash),
      reinterpretAsFixedString(account_hash),
      reinterpretAsFixedString(platform_hash),
      reinterpretAsFixedString(detected_bits),
      reinterpretAsFixedString(clean_bits),
      reinterpretAsFixedString(user_device_hash),
      reinterpretAsFixedString(session_device_hash)
    ),
    64
  ) as facts
from activity_packed
where received_at > now() - interval 1 day;

drop table activity_packed;
