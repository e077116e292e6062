-- Which open alerts wait longest, and who has them?
--
-- Answer: one row per assignee, and one with an empty id for alerts that nobody has: the open
-- alerts, those older than the limit, and the oldest of them. Ids are those of operators, as in
-- the API.
-- Do: give away what nobody has; ask whoever has old ones, or take some from them.
-- Parameters: hours = 24
select
  assignee,
  count() as open_alerts,
  countIf(created_at < {to:DateTime64(3, 'UTC')} - toIntervalHour({hours:UInt32})) as older,
  min(created_at) as oldest_at,
  argMin(alert_id, (created_at, alert_id)) as oldest_alert,
  max(risk_score) as peak_risk
from analytics.alerts
where tenant_id = {tenant:String}
  and created_at >= {from:DateTime64(3, 'UTC')} and created_at < {to:DateTime64(3, 'UTC')}
  and disposition = 'OPEN'
group by assignee
order by oldest_at, assignee
limit 500
