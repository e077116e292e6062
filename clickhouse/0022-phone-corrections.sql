-- The phone that an install is on, as analysts say: a replica of `phone_corrections` in Postgres,
-- for the views. A row replaces the one of an earlier round.
create table if not exists phone_corrections_replica (
  tenant_id LowCardinality(String),
  device_id String,
  -- Empty when none counts any more, as is the next one.
  phone_id String,
  from_phone_id String,
  at DateTime64(3, 'UTC'),
  round UInt64
)
engine = ReplacingMergeTree(round)
order by (tenant_id, device_id);
