-- How long do devices exist before their first alert?
--
-- Answer: devices by the time from their first event to their first alert. A device that alerts
-- within a minute was bad from the start. A device that alerts after weeks was compromised, sold
-- or lost.
-- Do: when the last row grows, add rules that look at change. When the first row grows, add rules
-- at sign-up.
select
  multiIf(
    seconds < 60, '1: within a minute',
    seconds < 3600, '2: within an hour',
    seconds < 86400, '3: within a day',
    seconds < 604800, '4: within a week',
    '5: later'
  ) as time_to_first_alert,
  count() as devices,
  round(devices / sum(devices) over (), 3) as share,
  round(quantileExact(0.5)(seconds) / 3600, 2) as median_hours
from (
  select dateDiff('second', seen.first_seen_at, raised.first_alert_at) as seconds
  from (
    select device_id, min(created_at) as first_alert_at
    from analytics.alerts
    where tenant_id = {tenant:String}
    group by device_id
    having first_alert_at >= {from:DateTime64(3, 'UTC')}
      and first_alert_at < {to:DateTime64(3, 'UTC')}
  ) as raised
  join (
    select device_id, first_seen_at
    from analytics.devices
    where tenant_id = {tenant:String}
  ) as seen using (device_id)
)
group by time_to_first_alert
order by time_to_first_alert
