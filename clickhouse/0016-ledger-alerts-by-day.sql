-- The alerts that events deserved, by the day on which that was decided: a look at some hours reads
-- the days around them, and days go as whole files once the ledger does not compare them any more.
--
-- May be broken off anywhere and run again: what an earlier run left behind is copied first.

create table if not exists ledger_alerts_by_day as ledger_alerts;
insert into ledger_alerts (tenant_id, alert_id, first)
select tenant_id, alert_id, first from ledger_alerts_by_day
settings max_partitions_per_insert_block = 0;
drop table ledger_alerts_by_day;

create table ledger_alerts_by_day (
  tenant_id LowCardinality(String),
  alert_id String,
  -- The event that deserved it first. An alert that is decided again on another day has a row each.
  first SimpleAggregateFunction(min, Tuple(position UInt64, hour DateTime('UTC'))),
  -- Not the event's: an edge's clock may be anywhere.
  day Date default toDate(now(), 'UTC')
)
engine = AggregatingMergeTree
partition by day
order by (tenant_id, alert_id)
ttl day + interval 40 day
settings ttl_only_drop_parts = 1;

insert into ledger_alerts_by_day (tenant_id, alert_id, first, day)
select tenant_id, alert_id, first, least(toDate(first.hour, 'UTC'), toDate(now(), 'UTC')) as day
from ledger_alerts final
where first.hour > now() - interval 40 day
settings max_partitions_per_insert_block = 0;

exchange tables ledger_alerts and ledger_alerts_by_day;

-- What was written while it was copied.
insert into ledger_alerts (tenant_id, alert_id, first, day)
select tenant_id, alert_id, first, least(toDate(first.hour, 'UTC'), toDate(now(), 'UTC')) as day
from ledger_alerts_by_day
where first.hour > now() - interval 40 day
settings max_partitions_per_insert_block = 0;
drop table ledger_alerts_by_day;
