-- How long does it take from the first sight of a fraudster to the label?
--
-- Answer: one row per label, most sessions first: from when the device was first seen to the
-- label, and from the start of the session to it, in days; half of the sessions took less, and nine
-- in ten less than the second figure. So long the figures of recent sessions are incomplete.
-- Do: judge rules and policies on sessions that are older than this; ask who sends the slow labels
-- whether they can come sooner.
select
  label,
  count() as sessions,
  round(quantileExact(0.5)(dateDiff('second', first_seen_at, labelled_at)) / 86400, 1)
    as days_from_first_sight,
  round(quantileExact(0.5)(dateDiff('second', started_at, labelled_at)) / 86400, 1)
    as days_from_session,
  round(quantileExact(0.9)(dateDiff('second', started_at, labelled_at)) / 86400, 1)
    as days_from_session_p90,
  (select max(copied_at) from analytics.freshness) as as_of
from (
  select device_id, label, started_at, labelled_at
  from analytics.labelled_sessions
  where tenant_id = {tenant:String} and outcome = 'fraud'
    and started_at >= {from:DateTime64(3, 'UTC')} and started_at < {to:DateTime64(3, 'UTC')}
) as labelled
join (
  select device_id, first_seen_at
  from analytics.devices
  where tenant_id = {tenant:String}
) as seen using (device_id)
group by label
order by sessions desc, label
limit 100
