create or replace view {analytics:Identifier}.reconciliation (
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
  as_of DateTime64(3, 'UTC') comment 'Everything decided by then is compared, nothing later.',
  stream UInt8 comment 'The number of the tenant''s telemetry stream; 1 where its hour has no event in it.'
) as
with
  assumeNotNull((select max(replicated_at) from replication_rounds)) as copied,
  assumeNotNull((select max(at) from reconciliation_watermarks where at <= copied)) as compared_at,
  -- By stream: nothing at this offset or after it is compared.
  assumeNotNull((
    select mapFromArrays(groupArray(stream), groupArray(end))
    from (
      select stream, max(stream_offset) as end from reconciliation_watermarks
      where at <= copied
      group by stream
    )
  )) as ends,
  assumeNotNull((select max(stream_offset) from reconciliation_start)) as start_offset,
  assumeNotNull((select max(at) from reconciliation_start)) as begun_at
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
  compared_at as as_of,
  greatest(1, stream_number) as stream
from (
  select
    tenant_id, hour,
    max(of_stream) as stream_number,
    sumMap(counts) as sums,
    sums['accepted'] as accepted, sums['stored'] as stored_all, sums['repeats'] as repeats,
    sums['refused'] as refused, sums['rows_due'] as rows_due,
    stored_all - in_flight - refused - rows_due as erased,
    sums['rows'] as rows, sums['decided'] as decided, sums['alerts_due'] as alerts_due,
    sums['alerts'] as alerts, sums['alerts_extra'] as alerts_extra,
    sums['deliveries'] as deliveries, sums['attempted'] as attempted,
    sums['delivered'] as delivered, sums['in_flight'] as in_flight
  from (
    select tenant_id, hour, 0 as of_stream, map('accepted', sum(accepted)) as counts
    from reconciliation_accepted final
    group by tenant_id, hour
    union all
    select
      tenant_id, hour, max(stream) as of_stream,
      map(
        'stored', sumIf(events, stage = 'stored'),
        'in_flight', sumIf(events, stage = 'stored' and stream_offset >= ends[stream]),
        'refused', sumIf(refused, stage = 'stored' and stream_offset < ends[stream]),
        'rows_due', sumIf(length(ids), stage = 'stored' and stream_offset < ends[stream]),
        'decided', sumIf(events, stage = 'decided' and stream_offset < ends[stream]),
        'repeats', sumIf(length(ids), stage = 'decided' and stream_offset < ends[stream])
      ) as counts
    from reconciliation_entries final
    where tenant_id != '' and stream_offset > start_offset
    group by tenant_id, hour
    union all
    select
      tenant_id, toStartOfHour(received_at) as hour, max(stream) as of_stream,
      map('rows', uniqExact(stream_offset)) as counts
    from telemetry
    where stream_offset > start_offset and stream_offset < ends[stream]
      and (tenant_id, stream_offset) not in (
        select tenant_id, stream_offset + place from reconciliation_entries
        array join places as place
        where stage = 'decided'
      )
    group by tenant_id, hour
    union all
    select
      tenant_id, hour, max(deserved_on) as of_stream,
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
        max(at_offset) as deserved_at, max(on_stream) as deserved_on
      from (
        select
          tenant_id, alert_id, true as is_due, false as is_present, false as is_sent,
          false as is_tried, false as is_taken, toDateTime64(0, 3, 'UTC') as created,
          first.hour as due_hour, first.stream_offset as at_offset, stream as on_stream
        from reconciliation_expected_alerts final
        union all
        select
          tenant_id, alert_id, false, true, false, false, false, created_at,
          toDateTime(0, 'UTC'), 0, 0
        from alerts_replica final
        union all
        select
          tenant_id, alert_id, false, false, true, notEmpty(attempt_at), state = 'delivered',
          toDateTime64(0, 3, 'UTC'), toDateTime(0, 'UTC'), 0, 0
        from deliveries_replica final
        where event = 'risk.alert'
      )
      group by tenant_id, alert_id
    )
    where (due and deserved_at < ends[deserved_on] or not due and present and notEmpty(ends))
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
  from reconciliation_cutoffs
  group by tenant_id
) as cutoffs using (tenant_id)
comment 'What every stage did with the events of an hour, and where they differ: the columns that end in missing, and alerts_unexplained, are 0 when all agree. Cheap by tenant with hour.';
