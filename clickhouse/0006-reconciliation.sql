-- Reconciliation: what every stage reports about the events of an hour, stored apart from the data
-- that it describes. The hour of an event is that of its received_at, so every stage counts it in
-- the same hour. An edge reports the events that it answered with a 200; a scorer reports the
-- events of each message before it acknowledges it, and again what it decided. Rows, alerts and
-- deliveries are counted where they are stored. All rows are idempotent: redelivery needs no
-- correction.

-- One row per message, tenant, hour and stage.
create table if not exists reconciliation_entries (
  -- Empty for a message without a valid event.
  tenant_id LowCardinality(String),
  hour DateTime('UTC') codec(Delta, ZSTD(1)),
  stage Enum8('stored' = 1, 'decided' = 2),
  -- The number of the telemetry stream. Offsets of two streams cannot be compared.
  stream UInt8 default 1,
  -- Of the first event of the message; with the stream it identifies the message.
  stream_offset UInt64 codec(Delta, ZSTD(1)),
  -- Stage stored: when the stream stored the message, by its server. A scorer that finds another
  -- message at the offset knows that the stream was put back to an earlier copy.
  published_at DateTime64(3, 'UTC') codec(Delta, ZSTD(1)),
  events UInt16,
  -- Events that the engine refused; they are dead letters.
  refused UInt16,
  -- Stage stored: the events with a row. Stage decided: the repeats of earlier bytes. Each is the
  -- bits of the event id and the event's place in the message. Erasure removes its events here; the
  -- column events keeps its number.
  ids Array(FixedString(17)),
  places Array(UInt8),
  index stream_offset_range stream_offset type minmax granularity 1
)
engine = ReplacingMergeTree
partition by toYYYYMM(hour)
order by (tenant_id, hour, stage, stream, stream_offset)
-- Rows of a tenant go with the retention of its events.
ttl hour + interval 8 day delete where tenant_id = ''
settings merge_selector_base = 10;

-- How many events each edge says that it answered with a 200. An edge counts from its start, so the
-- highest number is current. Rows go with the retention of the tenant's events.
create table if not exists reconciliation_accepted (
  tenant_id LowCardinality(String),
  hour DateTime('UTC'),
  edge_id String,
  accepted SimpleAggregateFunction(max, UInt64)
)
engine = AggregatingMergeTree
order by (tenant_id, hour, edge_id);

-- Alerts that events call for, written before they are raised. Partitioned by the day of the
-- decision: a query about some hours reads the days around them, and TTL drops whole parts.
create table if not exists reconciliation_expected_alerts (
  tenant_id LowCardinality(String),
  alert_id String,
  -- The telemetry stream of the tenant.
  stream SimpleAggregateFunction(max, UInt8) default 1,
  -- The first event that calls for the alert. An alert that is decided again on another day has a
  -- row for each day.
  first SimpleAggregateFunction(min, Tuple(stream_offset UInt64, hour DateTime('UTC'))),
  -- By the clock of the server; the clock of an edge may be wrong.
  day Date default toDate(now(), 'UTC')
)
engine = AggregatingMergeTree
partition by day
order by (tenant_id, alert_id)
ttl day + interval 40 day
settings ttl_only_drop_parts = 1;

-- The low watermark of deciding at an instant: every event of the stream below the offset was
-- decided.
create table if not exists reconciliation_watermarks (
  -- By the clock of Postgres.
  at DateTime64(3, 'UTC'),
  stream UInt8 default 1,
  stream_offset UInt64
)
engine = MergeTree
order by at
ttl toDateTime(at) + interval 1 day;

-- Before which instant retention removed data. The instants only rise: a longer retention brings
-- nothing back.
create table if not exists reconciliation_cutoffs (
  tenant_id LowCardinality(String),
  events SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  alerts SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  deliveries SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
engine = AggregatingMergeTree
order by tenant_id;

-- One row: reconciliation compares nothing that is older than this.
create table if not exists reconciliation_start (
  stream_offset UInt64,
  at DateTime64(3, 'UTC')
)
engine = MergeTree
order by at;

insert into reconciliation_start
select max(stream_offset), now64(3) from telemetry
having (select count() from reconciliation_start) = 0;
