-- Which devices keep raising alerts after one was confirmed as fraud?
--
-- Answer: one row per device: when its first alert was confirmed, the alerts raised since, and the
-- people who have used it since. Each of them is a known case that was not stopped.
-- Do: block the device in the app's own backend. Confirming an alert here does not block a device.
-- Parameters: alerts_min = 2
select
  raised.device_id as device_id,
  cases.confirmed_at as confirmed_at,
  count() as alerts_since,
  countIf(raised.action = 'BLOCK') as blocks_since,
  uniqExactIf(raised.user_id, raised.user_id != '') as users_since,
  max(raised.created_at) as last_alert_at
from analytics.alerts as raised
join (
  select device_id, min(assumeNotNull(disposition_changed_at)) as confirmed_at
  from analytics.alerts
  where tenant_id = {tenant:String} and disposition = 'CONFIRMED'
  group by device_id
) as cases on cases.device_id = raised.device_id
where raised.tenant_id = {tenant:String}
  and raised.created_at >= {from:DateTime64(3, 'UTC')}
  and raised.created_at < {to:DateTime64(3, 'UTC')}
  and raised.created_at > cases.confirmed_at
group by device_id, confirmed_at
having alerts_since >= {alerts_min:UInt32}
order by alerts_since desc, device_id
limit 500
