-- How many sessions become alerts, reach us, are judged and are confirmed, week by week?
--
-- Answer: one row per week, each column a part of the one before: sessions, those with an alert,
-- their alerts, delivered, judged and confirmed ones. The largest drop is where cases are lost.
-- Do: between alerts and delivered look at the receiver, between delivered and judged at the queue,
-- between judged and confirmed at the precision of flags.
with
  seen as (
    select toMonday(started_at) as week, count() as sessions
    from analytics.sessions
    where tenant_id = {tenant:String}
      and started_at >= {from:DateTime64(3, 'UTC')} and started_at < {to:DateTime64(3, 'UTC')}
    group by week
  ),
  raised as (
    select
      toMonday(created_at) as week,
      uniqExact(device_id, session_id) as sessions_with_alert,
      count() as alerts,
      countIf(alert_id in (
        select alert_id
        from analytics.deliveries
        where tenant_id = {tenant:String} and event = 'risk.alert' and state = 'delivered'
      )) as delivered,
      countIf(disposition in ('CONFIRMED', 'FALSE_POSITIVE', 'REVIEWED')) as judged,
      countIf(disposition = 'CONFIRMED') as confirmed
    from analytics.alerts
    where tenant_id = {tenant:String}
      and created_at >= {from:DateTime64(3, 'UTC')} and created_at < {to:DateTime64(3, 'UTC')}
    group by week
  )
select week, sessions, sessions_with_alert, alerts, delivered, judged, confirmed
from seen
left join raised using (week)
order by week
limit 1000
