-- How many honest users did each version of the policy review or block?
--
-- Answer: one row per version of the policy, newest first: the sessions known to be legitimate that
-- it scored, those of them with an alert, their share with the range that contains the true share
-- with 95 % confidence (Wilson), and the users in them. Below ten sessions there is no share. Most
-- labels of honest sessions come from alerts that were judged, so the share is of those that
-- somebody looked at.
-- Do: a version whose range is above the one before harms more; see its flags in question 40.
with
  honest as (
    select device_id, session_id, users
    from analytics.labelled_sessions
    where tenant_id = {tenant:String} and outcome = 'legitimate'
      and started_at >= {from:DateTime64(3, 'UTC')} and started_at < {to:DateTime64(3, 'UTC')}
  ),
  scored as (
    select device_id, session_id, policy_version
    from analytics.events
    where tenant_id = {tenant:String} and device_id in (select device_id from honest)
    group by device_id, session_id, policy_version
  ),
  raised as (
    select device_id, session_id, policy_version, count() as alerts
    from analytics.alerts
    where tenant_id = {tenant:String}
    group by device_id, session_id, policy_version
  )
select
  policy_version,
  count() as honest_sessions,
  countIf(alerts > 0) as harmed_sessions,
  if(honest_sessions < 10, null, round(harmed_sessions / honest_sessions, 3)) as harmed_share,
  round(greatest(0, (harmed_sessions + 1.9208) / (honest_sessions + 3.8416)
    - 1.96 * sqrt(harmed_sessions * (honest_sessions - harmed_sessions) / honest_sessions + 0.9604)
      / (honest_sessions + 3.8416)), 3) as harmed_low,
  round(least(1, (harmed_sessions + 1.9208) / (honest_sessions + 3.8416)
    + 1.96 * sqrt(harmed_sessions * (honest_sessions - harmed_sessions) / honest_sessions + 0.9604)
      / (honest_sessions + 3.8416)), 3) as harmed_high,
  length(groupUniqArrayArrayIf(users, alerts > 0)) as harmed_users,
  (select max(copied_at) from analytics.freshness) as as_of
from honest
join scored using (device_id, session_id)
left join raised using (device_id, session_id, policy_version)
group by policy_version
order by policy_version desc
limit 100
