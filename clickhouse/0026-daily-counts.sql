-- The counts of whole days, merged from those of their hours, so that a page of a month reads a row
-- for each day instead of 24. A job of the console makes a day once all of its hours are counted,
-- and again once one of them was counted again; until then the hours are read.

-- The rows of a day, as `hourly_counts` has those of an hour.
create table if not exists daily_counts (
  tenant_id LowCardinality(String),
  -- A point is what a chart of days shows: of all, of a platform, or of a version of a platform.
  subject Enum8('version' = 0, 'flag' = 1, 'signal' = 2, 'point' = 3),
  -- Its first instant.
  day DateTime('UTC') codec(Delta, ZSTD(1)),
  -- When the hours were merged.
  counted_at DateTime64(3, 'UTC') codec(Delta, ZSTD(1)),
  platform LowCardinality(String),
  sdk_version LowCardinality(String),
  -- The flag or the signal; of a point, which of the three it is.
  name LowCardinality(String),
  first_at DateTime64(3, 'UTC') codec(ZSTD(1)),
  last_at DateTime64(3, 'UTC') codec(ZSTD(1)),
  events UInt64 codec(ZSTD(1)),
  review UInt64 codec(ZSTD(1)),
  block UInt64 codec(ZSTD(1)),
  measured UInt64 codec(ZSTD(1)),
  anonymous UInt64 codec(ZSTD(1)),
  hosting UInt64 codec(ZSTD(1)),
  countries Array(LowCardinality(String)),
  devices AggregateFunction(uniq, String),
  sessions AggregateFunction(uniq, String, String),
  -- Of points, which have no sketches: to make a number of a full one takes a millisecond.
  device_count UInt64 codec(ZSTD(1)),
  session_count UInt64 codec(ZSTD(1))
)
engine = ReplacingMergeTree
order by (tenant_id, subject, day, counted_at, platform, sdk_version, name)
ttl day + interval 100 day
-- A row is up to 256 KiB: threads share the rows of a page in small granules.
settings index_granularity = 16, min_bytes_for_wide_part = 1073741824;

-- Which merging of a day holds: the latest of the tenant's own and of all tenants', while no hour
-- of the day was counted later.
create table if not exists daily_marks (
  -- Empty: of all tenants.
  tenant_id LowCardinality(String),
  day DateTime('UTC'),
  counted_at DateTime64(3, 'UTC')
)
engine = ReplacingMergeTree(counted_at)
order by (tenant_id, day)
ttl day + interval 100 day
settings index_granularity = 1024;
