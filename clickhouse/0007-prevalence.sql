-- Prevalence spikes: signals whose share of devices rose abruptly within one SDK version, found by
-- the console. A row replaces the one of an earlier check.

create table if not exists prevalence_spikes (
  tenant_id LowCardinality(String),
  platform String,
  sdk_version String,
  signal String,
  -- The beginning of the 24 hours in which it was first found.
  started_at DateTime64(3, 'UTC'),
  checked_at DateTime64(3, 'UTC'),
  ended_at Nullable(DateTime64(3, 'UTC')),
  share Float64,
  earlier_share Nullable(Float64),
  elsewhere_share Nullable(Float64),
  z_score Float64,
  devices UInt64,
  alerts UInt64
)
engine = ReplacingMergeTree(checked_at)
order by (tenant_id, platform, sdk_version, signal, started_at)
-- An open spike is checked every hour.
ttl toDateTime(checked_at) + interval 730 day;

-- One row, replaced by each check of all tenants.
create table if not exists prevalence_checks (
  singleton UInt8,
  checked_at DateTime64(3, 'UTC')
)
engine = ReplacingMergeTree(checked_at)
order by singleton;
