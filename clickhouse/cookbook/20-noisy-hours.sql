-- Which hours had far more alerts than usual, and which devices raised them?
--
-- Answer: one row per hour above the usual rate: its alerts, the number of devices, and the most
-- frequent reason. Few devices are one attacker. Many devices with one reason are a wave or a bad
-- release.
-- Do: start with the alerts of the most frequent reason of the newest hour.
-- Parameters: alerts_min = 10, times_min = 5
select
  hour,
  alerts,
  round(usual, 2) as usual_alerts,
  round(alerts / usual, 1) as times_usual,
  devices,
  users,
  leading_reason
from (
  select
    toStartOfHour(created_at) as hour,
    count() as alerts,
    uniqExact(device_id) as devices,
    uniqExactIf(user_id, user_id != '') as users,
    sumMap([toString(flags[1])], [toInt64(1)]) as of_reason,
    arraySort((code, n) -> (-n, code), of_reason.1, of_reason.2)[1] as leading_reason,
    -- Over all hours of the period, quiet ones included.
    sum(alerts) over () / greatest(1, dateDiff(
      'hour', {from:DateTime64(3, 'UTC')}, {to:DateTime64(3, 'UTC')}
    )) as usual
  from analytics.alerts
  where tenant_id = {tenant:String}
    and created_at >= {from:DateTime64(3, 'UTC')} and created_at < {to:DateTime64(3, 'UTC')}
  group by hour
)
where alerts >= {alerts_min:UInt32} and alerts / usual >= {times_min:Float64}
order by alerts desc, hour
limit 200
