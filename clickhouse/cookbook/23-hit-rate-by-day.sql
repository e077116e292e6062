-- Which share of sessions is reviewed or blocked, day by day?
--
-- Answer: one row per day with its sessions by the action of their highest score. A step without a
-- new policy is an attack or a release; a step with one is the policy.
-- Do: compare the day of a step with the policy's versions (`di policy versions`) and with the SDK's
-- releases.
select
  toDate(started_at) as day,
  count() as sessions,
  countIf(rasp_action = 'REVIEW') as reviewed,
  countIf(rasp_action = 'BLOCK') as blocked,
  round((reviewed + blocked) / sessions, 4) as hit_rate,
  uniqExact(device_id) as devices
from analytics.sessions
where tenant_id = {tenant:String}
  and started_at >= {from:DateTime64(3, 'UTC')} and started_at < {to:DateTime64(3, 'UTC')}
group by day
order by day
limit 5000
