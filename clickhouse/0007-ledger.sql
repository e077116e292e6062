-- The ledger: what every stage says it did with the events of an hour, kept apart from what it did.
-- The hour of an event is that of its received_at, which the edge gives it once: every stage counts
-- it in the same hour, however late it gets there. An edge says what it answered with a 200, a
-- scorer says of every message which events it brings before it acknowledges it, and again what it
-- decided; rows, alerts and deliveries are counted where they are. Everything here may be written
-- again and changes nothing: redelivery, restarts and crashes need no correction.

-- One row of each message, tenant, hour and stage. Stored: the events that the message brings.
-- Decided: those that were decided, and which of them were repeats of bytes that had come before.
create table if not exists ledger_entries (
  -- Empty for a message that brings no event at all.
  tenant_id LowCardinality(String),
  hour DateTime('UTC') codec(Delta, ZSTD(1)),
  stage Enum8('stored' = 1, 'decided' = 2),
  -- Of the message's first event: it names the message.
  position UInt64 codec(Delta, ZSTD(1)),
  events UInt16,
  -- Those of them that the engine refused; they are dead letters.
  refused UInt16,
  -- Stored: the events with a row. Decided: the repeats. The bits of an event's id, and its place in
  -- the message. An erasure takes its events out, and events keeps their number.
  ids Array(FixedString(17)),
  places Array(UInt8)
)
engine = ReplacingMergeTree
partition by toYYYYMM(hour)
order by (tenant_id, hour, stage, position)
ttl hour + interval 8 day delete where tenant_id = '';

-- What edges claim to have answered with a 200: each counts from its start, so the highest is right.
create table if not exists ledger_accepted (
  tenant_id LowCardinality(String),
  hour DateTime('UTC'),
  edge_id String,
  accepted SimpleAggregateFunction(max, UInt64)
)
engine = AggregatingMergeTree
order by (tenant_id, hour, edge_id);

-- The alerts that events deserved, written before they are raised.
create table if not exists ledger_alerts (
  tenant_id LowCardinality(String),
  alert_id String,
  -- The event that deserved it first.
  first SimpleAggregateFunction(min, Tuple(position UInt64, hour DateTime('UTC')))
)
engine = AggregatingMergeTree
order by (tenant_id, alert_id);

-- Up to which position everything had been decided at an instant, by the clock of Postgres.
create table if not exists ledger_marks (
  at DateTime64(3, 'UTC'),
  position UInt64
)
engine = MergeTree
order by at
ttl toDateTime(at) + interval 1 day;

-- Before which instant retention removed what. It only rises: a limit that is lengthened brings
-- nothing back.
create table if not exists ledger_cutoffs (
  tenant_id LowCardinality(String),
  events SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  alerts SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  deliveries SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
engine = AggregatingMergeTree
order by tenant_id;

-- What is older than the ledger is none of its business.
create table if not exists ledger_beginning (
  position UInt64,
  at DateTime64(3, 'UTC')
)
engine = MergeTree
order by at;

insert into ledger_beginning
select max(position), now64(3) from telemetry
having (select count() from ledger_beginning) = 0;

create or replace view {analytics:Identifier}.ledger (
  tenant_id LowCardinality(String) comment 'The tenant.',
  hour DateTime('UTC') comment 'The hour in which the edges received the events.',
  accepted UInt64
    comment 'Events that edges say they answered with a 200, repeats of the same bytes included. An edge that is killed takes the count of its last seconds with it: then it is less than stored.',
  stored UInt64 comment 'Events in the messages of JetStream, repeats included, as read from it.',
  repeats UInt64 comment 'Of those, the same bytes again: they have no row of their own.',
  refused UInt64 comment 'Of those, dead letters: the engine could not hold them.',
  erased UInt64 comment 'Of those, taken out by the erasure of a device or a user.',
  rows UInt64 comment 'Events in the database: stored without repeats, refused and erased.',
  decided UInt64 comment 'Events that were decided, repeats included: as many as stored.',
  alerts_due UInt64 comment 'Alerts that events of the hour were the first to deserve.',
  alerts UInt64 comment 'Of those, the alerts that are there.',
  deliveries UInt64 comment 'Of those alerts, the ones with a delivery: every one has it.',
  attempted UInt64 comment 'Of those deliveries, the ones with an attempt.',
  delivered UInt64 comment 'Of those deliveries, the ones that succeeded.',
  in_flight UInt64 comment 'Events read from JetStream and not known to be decided yet: they are in no other number but accepted and stored.',
  accepted_missing Int64 comment 'Accepted and not stored.',
  rows_missing Int64 comment 'Rows that should be there and are not; below 0, rows too many. A repeat of the same millisecond, or by an edge whose clock is behind, may look so: the endpoint looks it up.',
  decisions_missing Int64 comment 'Stored and not decided; below 0, decided and not stored.',
  alerts_missing Int64 comment 'Deserved alerts that are not there.',
  alerts_unexplained Int64 comment 'Alerts of the hour that no event deserved.',
  deliveries_missing Int64 comment 'Alerts without their delivery.',
  expired Bool comment 'Retention has removed the hour''s events: they are not compared.',
  as_of DateTime64(3, 'UTC') comment 'Everything decided by then is compared, nothing later.'
) as
with
  assumeNotNull((select max(copied_at) from mirror_rounds)) as copied,
  assumeNotNull((select max(at) from ledger_marks where at <= copied)) as compared_at,
  -- Nothing at this position or after it is compared.
  assumeNotNull((select max(position) from ledger_marks where at <= copied)) as end_position,
  assumeNotNull((select max(position) from ledger_beginning)) as first_position,
  assumeNotNull((select max(at) from ledger_beginning)) as begun_at
select
  tenant_id, hour, accepted, stored_all as stored, repeats, refused, erased, rows, decided,
  alerts_due, alerts, deliveries, attempted, delivered, in_flight,
  if(expired, 0, greatest(0, toInt64(accepted) - toInt64(stored_all))) as accepted_missing,
  if(expired, 0, toInt64(rows_due) - toInt64(repeats) - toInt64(rows)) as rows_missing,
  if(expired, 0, toInt64(stored_all - in_flight) - toInt64(decided)) as decisions_missing,
  if(hour < alerts_kept, 0, toInt64(alerts_due) - toInt64(alerts)) as alerts_missing,
  if(hour < alerts_kept, 0, toInt64(alerts_extra)) as alerts_unexplained,
  if(hour < greatest(alerts_kept, deliveries_kept), 0, toInt64(alerts) - toInt64(deliveries))
    as deliveries_missing,
  hour < events_kept as expired,
  compared_at as as_of
from (
  select
    tenant_id, hour,
    sumMap(counts) as sums,
    sums['accepted'] as accepted, sums['stored'] as stored_all, sums['repeats'] as repeats,
    sums['refused'] as refused, sums['rows_due'] as rows_due,
    stored_all - in_flight - refused - rows_due as erased,
    sums['rows'] as rows, sums['decided'] as decided, sums['alerts_due'] as alerts_due,
    sums['alerts'] as alerts, sums['alerts_extra'] as alerts_extra,
    sums['deliveries'] as deliveries, sums['attempted'] as attempted,
    sums['delivered'] as delivered, sums['in_flight'] as in_flight
  from (
    select tenant_id, hour, map('accepted', sum(accepted)) as counts
    from ledger_accepted final
    group by tenant_id, hour
    union all
    select
      tenant_id, hour,
      map(
        'stored', sumIf(events, stage = 'stored'),
        'in_flight', sumIf(events, stage = 'stored' and position >= end_position),
        'refused', sumIf(refused, stage = 'stored' and position < end_position),
        'rows_due', sumIf(length(ids), stage = 'stored' and position < end_position),
        'decided', sumIf(events, stage = 'decided' and position < end_position),
        'repeats', sumIf(length(ids), stage = 'decided' and position < end_position)
      ) as counts
    from ledger_entries final
    where tenant_id != '' and position > first_position
    group by tenant_id, hour
    union all
    select tenant_id, toStartOfHour(received_at) as hour, map('rows', uniqExact(position)) as counts
    from telemetry
    where position > first_position and position < end_position
      and (tenant_id, position) not in (
        select tenant_id, position + place from ledger_entries
        array join places as place
        where stage = 'decided'
      )
    group by tenant_id, hour
    union all
    select
      tenant_id, hour,
      map(
        'alerts_due', countIf(due),
        'alerts', countIf(due and present),
        'alerts_extra', countIf(present and not due and created_at >= begun_at),
        'deliveries', countIf(due and present and sent),
        'attempted', countIf(due and present and sent and tried),
        'delivered', countIf(due and present and sent and taken)
      ) as counts
    from (
      select
        tenant_id, alert_id, max(is_due) as due, max(is_present) as present,
        max(is_sent) as sent, max(is_tried) as tried, max(is_taken) as taken,
        max(created) as created_at,
        if(due, max(due_hour), toStartOfHour(created_at)) as hour,
        max(at_position) as deserved_at
      from (
        select
          tenant_id, alert_id, true as is_due, false as is_present, false as is_sent,
          false as is_tried, false as is_taken, toDateTime64(0, 3, 'UTC') as created,
          first.hour as due_hour, first.position as at_position
        from ledger_alerts final
        union all
        select
          tenant_id, alert_id, false, true, false, false, false, created_at,
          toDateTime(0, 'UTC'), 0
        from alerts_mirror final
        union all
        select
          tenant_id, alert_id, false, false, true, notEmpty(attempt_at), state = 'delivered',
          toDateTime64(0, 3, 'UTC'), toDateTime(0, 'UTC'), 0
        from deliveries_mirror final
        where event = 'risk.alert'
      )
      group by tenant_id, alert_id
    )
    where deserved_at < end_position and (due or present)
    group by tenant_id, hour
  )
  group by tenant_id, hour
) as counted
left join (
  select
    tenant_id,
    max(events) as events_kept,
    toStartOfHour(max(alerts)) + interval 1 hour as alerts_kept,
    toStartOfHour(max(deliveries)) + interval 1 hour as deliveries_kept
  from ledger_cutoffs
  group by tenant_id
) as cutoffs using (tenant_id)
comment 'What every stage did with the events of an hour, and where they differ: the columns that end in missing, and alerts_unexplained, are 0 when all agree. Cheap by tenant with hour.';
