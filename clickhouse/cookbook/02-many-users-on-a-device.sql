-- Which devices have more users than a household has people?
--
-- Answer: one row per device with its alerts, most users first. A shared tablet in a shop looks
-- the same, but it has no alerts and stays in use for months.
-- Do: limit what the newest accounts of such a device can do until they are verified.
-- Parameters: users_min = 6
select
  device_id,
  length(users) as users_seen,
  first_seen_at,
  last_seen_at,
  peak_rasp_score,
  risk_score,
  alerts,
  confirmed
from analytics.devices
left join (
  select device_id, count() as alerts, countIf(disposition = 'CONFIRMED') as confirmed
  from analytics.alerts
  where tenant_id = {tenant:String}
  group by device_id
) as raised using (device_id)
where tenant_id = {tenant:String}
  and last_seen_at >= {from:DateTime64(3, 'UTC')} and first_seen_at < {to:DateTime64(3, 'UTC')}
  and length(users) >= {users_min:UInt16}
order by users_seen desc, device_id
limit 200
