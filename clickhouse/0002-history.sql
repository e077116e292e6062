-- What is known of devices, sessions and users, kept up to date by the insert of the telemetry
-- itself. Every aggregate is idempotent (min, max, unique set), so that a row that is inserted
-- again changes nothing. Readers aggregate again: merges need not have happened. None is
-- partitioned by time: a history is one key range, however old it is. Small granules and blocks,
-- because reads are by key: what is decompressed for one of them is a few KB.
--
-- A device's whole history is a range of sessions; devices is the same, summed up per device, for
-- whoever looks at many of them.

create table if not exists devices (
  tenant_id LowCardinality(String),
  device_id String,
  first_seen_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
  last_seen_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  peak_rasp_score SimpleAggregateFunction(max, UInt8),
  -- Users and accounts alike.
  users SimpleAggregateFunction(groupUniqArrayArray, Array(String))
)
engine = AggregatingMergeTree
order by (tenant_id, device_id)
settings index_granularity = 256, min_compress_block_size = 4096, max_compress_block_size = 16384;

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
  started_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
  last_seen_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  -- Highest score first, its action and its flags with it; the order is total, so that neither
  -- duplicates nor the order of arrival can change which verdict is the session's.
  verdict SimpleAggregateFunction(max, Tuple(
    score UInt8,
    action Enum8('ALLOW' = 0, 'REVIEW' = 1, 'BLOCK' = 2),
    flags Array(String)
  )),
  users SimpleAggregateFunction(groupUniqArrayArray, Array(String))
)
engine = AggregatingMergeTree
order by (tenant_id, device_id, session_id)
settings index_granularity = 256, min_compress_block_size = 4096, max_compress_block_size = 16384;

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
  last_seen_at SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
engine = AggregatingMergeTree
order by (tenant_id, user_id, device_id)
settings index_granularity = 256, min_compress_block_size = 4096, max_compress_block_size = 16384;

create materialized view if not exists user_devices_of_telemetry to user_devices as
select
  tenant_id,
  arrayJoin(arrayDistinct(arrayFilter(id -> id != '', [user_id, account_id]))) as user_id,
  device_id,
  received_at as first_seen_at,
  received_at as last_seen_at
from telemetry;
