-- Which devices keep raising alerts after one was confirmed as fraud?
--
-- Answer: one row per device: its first confirmed alert, the alerts raised since, and the people
-- who have used it since. Each of them is a known case that was not stopped.
-- Do: block the device in the app's own backend. Confirming an alert here does not block a device.
-- Parameters: alerts_min = 2
select
  device_id,
  confirmed_at,
  countIf(created_at > confirmed_at) as alerts_since,
  countIf(created_at > confirmed_at and action = 'BLOCK') as blocks_since,
  uniqExactIf(user_id, created_at > confirmed_at and user_id != '') as users_since,
  max(created_at) as last_alert_at
from (
  select
    device_id, created_at, action, user_id,
    minIf(created_at, disposition = 'CONFIRMED') over (partition by device_id) as confirmed_at,
    countIf(disposition = 'CONFIRMED') over (partition by device_id) as confirmed
  from analytics.alerts
  where tenant_id = {tenant:String}
    and created_at >= {from:DateTime64(3, 'UTC')} and created_at < {to:DateTime64(3, 'UTC')}
)
where confirmed > 0
group by device_id, confirmed_at
having alerts_since >= {alerts_min:UInt32}
order by alerts_since desc, device_id
limit 500
