-- Behind which combinations of signals was money lost, and how much of it went unseen?
--
-- Answer: one row per currency and combination of detected signals of a fraudulent session, largest
-- loss first: sessions and losses, and of these what passed without an alert. A loss stands at the
-- last fraudulent session before it, once. Currencies are never added together. An empty
-- combination is fraud behind which no signal was detected.
-- Do: combinations with large missed losses deserve a floor; what is lost without any signal needs
-- other evidence, such as velocity or lists.
with
  lost as (
    select device_id, session_id, action, loss.1 as currency, loss.2 as amount
    from analytics.labelled_sessions
    array join cast(losses as Array(Tuple(String, Decimal(38, 4)))) as loss
    where tenant_id = {tenant:String} and outcome = 'fraud'
      and started_at >= {from:DateTime64(3, 'UTC')} and started_at < {to:DateTime64(3, 'UTC')}
  ),
  found as (
    select
      device_id,
      session_id,
      arraySort(groupUniqArrayArray(arrayConcat(detected_signals, detected_server_signals)))
        as signals
    from analytics.events
    where tenant_id = {tenant:String} and device_id in (select device_id from lost)
    group by device_id, session_id
  )
select
  currency,
  signals,
  count() as sessions,
  sum(amount) as lost,
  sumIf(amount, action = 'ALLOW') as lost_without_alert,
  (select max(copied_at) from analytics.freshness) as as_of
from lost
left join found using (device_id, session_id)
group by currency, signals
order by lost desc, currency, signals
limit 300
