-- What would a BLOCK threshold of 70 instead of 75 have blocked?
--
-- Answer: the alerts that would have been BLOCK instead of REVIEW, by their disposition. Sessions
-- that a later event blocked anyway are counted separately.
-- Do: compare CONFIRMED with FALSE_POSITIVE: fraud that is stopped against customers who are
-- turned away. `di policy backtest` answers for a whole policy; this query answers for the
-- threshold alone.
-- Parameters: block_from = 70
select
  disposition,
  countIf(blocked_anyway = 0) as newly_blocked,
  uniqExactIf(device_id, blocked_anyway = 0) as devices,
  uniqExactIf(user_id, blocked_anyway = 0 and user_id != '') as users,
  countIf(blocked_anyway = 1) as blocked_anyway_alerts
from (
  select device_id, session_id, user_id, disposition, blocked.yes as blocked_anyway
  from analytics.alerts as reviewed
  left join (
    select device_id, session_id, 1 as yes
    from analytics.alerts
    where tenant_id = {tenant:String} and action = 'BLOCK'
  ) as blocked using (device_id, session_id)
  where tenant_id = {tenant:String}
    and created_at >= {from:DateTime64(3, 'UTC')} and created_at < {to:DateTime64(3, 'UTC')}
    and action = 'REVIEW' and risk_score >= {block_from:UInt8}
)
group by disposition
order by newly_blocked desc, disposition
