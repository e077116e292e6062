-- What the overview and the fleet page count, by hour, so that they read some rows for each hour
-- instead of all events of it. A job of the console computes finished hours from the events that
-- are there, so nothing is added up: an hour that is computed again has the same numbers, and an
-- insert of events writes no part for it.

-- When the last row of an hour was inserted, by the clock of the server. It tells that an hour got
-- events after it was counted; a repeated insert has it counted again, to the same numbers.
alter table sdk_baselines
  add column if not exists inserted_at SimpleAggregateFunction(max, DateTime('UTC'));

alter table sdk_baselines_of_telemetry modify query
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
  groupBitmapStateIf(place, not bitTest(filled_categories, 5)) as empty_network,
  now('UTC') as inserted_at
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

-- A row for each platform and SDK version of an hour, each flag, and each signal of a platform and
-- version. Rows of several countings of an hour stand side by side; those of the counting that
-- `hourly_marks` names are read. The states hold hashes of 32 bits, never ids; an erasure removes
-- all rows of its tenant, and they are computed again from what remains.
create table if not exists hourly_counts (
  tenant_id LowCardinality(String),
  subject Enum8('version' = 0, 'flag' = 1, 'signal' = 2),
  hour DateTime('UTC') codec(Delta, ZSTD(1)),
  -- Of the counting.
  counted_at DateTime64(3, 'UTC') codec(Delta, ZSTD(1)),
  -- Empty of flags.
  platform LowCardinality(String),
  sdk_version LowCardinality(String),
  -- The flag or the signal.
  name LowCardinality(String),
  first_at DateTime64(3, 'UTC') codec(ZSTD(1)),
  last_at DateTime64(3, 'UTC') codec(ZSTD(1)),
  events UInt64 codec(ZSTD(1)),
  -- Events that were decided so.
  review UInt64 codec(ZSTD(1)),
  block UInt64 codec(ZSTD(1)),
  -- Events with a measured connection, those over a VPN, a proxy, a relay or Tor, and of hosts.
  measured UInt64 codec(ZSTD(1)),
  anonymous UInt64 codec(ZSTD(1)),
  hosting UInt64 codec(ZSTD(1)),
  countries Array(LowCardinality(String)),
  devices AggregateFunction(uniq, String),
  sessions AggregateFunction(uniq, String, String)
)
engine = ReplacingMergeTree
order by (tenant_id, subject, hour, counted_at, platform, sdk_version, name)
-- The fleet page goes back 92 days; what is older is read from events.
ttl hour + interval 100 day
-- A row is kilobytes: threads share the rows of a page in small granules.
settings index_granularity = 64, min_bytes_for_wide_part = 1073741824;

-- Which counting of an hour holds: the latest of the tenant's own and of all tenants'.
create table if not exists hourly_marks (
  -- Empty: of all tenants.
  tenant_id LowCardinality(String),
  -- 1970: what was counted of the tenant before does not hold any more, in any hour.
  hour DateTime('UTC'),
  counted_at DateTime64(3, 'UTC')
)
engine = ReplacingMergeTree(counted_at)
order by (tenant_id, hour)
ttl hour + interval 100 day delete where hour > toDateTime(0, 'UTC')
settings index_granularity = 1024;
