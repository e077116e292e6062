-- The history of devices, sessions and users, maintained by materialized views of telemetry. Every
-- aggregate is idempotent (min, max, set), so a row that is inserted again changes nothing. Readers
-- aggregate again, because rows of a key may not be merged yet. No table is partitioned by time: a
-- history is one key range. Granules and blocks are small because reads are by key.

create table if not exists devices (
  tenant_id LowCardinality(String),
  device_id String,
  first_seen_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
  last_seen_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  peak_rasp_score SimpleAggregateFunction(max, UInt8),
  -- Users and accounts.
  users SimpleAggregateFunction(groupUniqArrayArray, Array(String))
)
engine = AggregatingMergeTree
order by (tenant_id, device_id)
settings
  index_granularity = 256,
  min_compress_block_size = 4096,
  max_compress_block_size = 16384,
  merge_selector_base = 10;

create materialized view if not exists devices_of_telemetry to devices as
select
  tenant_id,
  device_id,
  received_at as first_seen_at,
  received_at as last_seen_at,
  rasp_score as peak_rasp_score,
  arrayFilter(id -> id != '', [user_id, account_id]) as users
from telemetry;

create table if not exists sessions (
  tenant_id LowCardinality(String),
  device_id String,
  session_id String,
  -- Counting and paging the sessions of a device reads 8 bytes of each instead of its id.
  session_hash SimpleAggregateFunction(any, UInt64) default cityHash64(session_id),
  started_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
  last_seen_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  -- The verdict of the highest score. The order is total, so duplicates and the order of arrival do
  -- not change it.
  verdict SimpleAggregateFunction(max, Tuple(
    score UInt8,
    action Enum8('ALLOW' = 0, 'REVIEW' = 1, 'BLOCK' = 2),
    flags Array(String)
  )),
  users SimpleAggregateFunction(groupUniqArrayArray, Array(String))
)
engine = AggregatingMergeTree
order by (tenant_id, device_id, session_id)
settings
  index_granularity = 256,
  min_compress_block_size = 4096,
  max_compress_block_size = 16384,
  -- Compact parts: the history of a device is a few rows of every part and nearly all columns, and
  -- opening a file per column is more than a quarter of its cost.
  min_bytes_for_wide_part = 1073741824;

create materialized view if not exists sessions_of_telemetry to sessions as
select
  tenant_id,
  device_id,
  session_id,
  received_at as started_at,
  received_at as last_seen_at,
  (rasp_score, rasp_action, flags) as verdict,
  arrayFilter(id -> id != '', [user_id, account_id]) as users
from telemetry;

create table if not exists user_devices (
  tenant_id LowCardinality(String),
  user_id String,
  device_id String,
  first_seen_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
  last_seen_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  -- 1 where the user or the device is a placeholder such as "unknown": such a pair links nothing.
  is_placeholder SimpleAggregateFunction(max, UInt8)
)
engine = AggregatingMergeTree
order by (tenant_id, user_id, device_id)
settings
  index_granularity = 256,
  min_compress_block_size = 4096,
  max_compress_block_size = 16384,
  merge_selector_base = 10;

create materialized view if not exists user_devices_of_telemetry to user_devices as
select
  tenant_id,
  named.1 as user_id,
  device_id,
  received_at as first_seen_at,
  received_at as last_seen_at,
  named.2 or has(placeholder_ids, 'device_id') as is_placeholder
from telemetry
array join arrayDistinct(arrayFilter(one -> one.1 != '', [
  (telemetry.user_id, has(placeholder_ids, 'user_id')),
  (account_id, has(placeholder_ids, 'account_id'))
])) as named;
