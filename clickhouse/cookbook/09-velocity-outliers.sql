-- Which devices start more sessions in an hour than a person can?
--
-- Answer: one row per device and hour. One user with many sessions is a script or a broken app.
-- Many users are one attacker with stolen accounts.
-- Do: when there are no flags, ask the app's team first: an app that restarts in a loop looks the
-- same.
-- Parameters: sessions_min = 20
select
  device_id,
  toStartOfHour(started_at) as hour,
  count() as sessions,
  length(groupUniqArrayArray(users)) as users_seen,
  max(risk_score) as peak_score,
  arraySort(groupUniqArrayArray(risk_flags)) as flags_seen
from analytics.sessions
where tenant_id = {tenant:String}
  and started_at >= {from:DateTime64(3, 'UTC')} and started_at < {to:DateTime64(3, 'UTC')}
  -- Only count by a hash first: that is enough for most devices.
  and (sipHash64(device_id), toStartOfHour(started_at)) in (
    select sipHash64(device_id), toStartOfHour(started_at) as hour
    from analytics.sessions
    where tenant_id = {tenant:String}
      and started_at >= {from:DateTime64(3, 'UTC')} and started_at < {to:DateTime64(3, 'UTC')}
    group by sipHash64(device_id), hour
    having count() >= {sessions_min:UInt32}
  )
group by device_id, hour
having sessions >= {sessions_min:UInt32}
order by sessions desc, hour, device_id
limit 200
