-- Who judges alerts, how fast, and with which result?
--
-- Answer: one row per person: the alerts judged first by that person, the median and the slowest
-- tenth of the time from raised to judged, and the share of CONFIRMED. Judgements within seconds
-- were made without looking; after days the money is gone.
-- Do: give the alerts of slow hours to more people, and compare results of the same flag between
-- people.
select
  actor,
  count() as judged,
  round(quantileExact(0.5)(seconds_after_raised) / 3600, 2) as median_hours,
  round(quantileExact(0.9)(seconds_after_raised) / 3600, 2) as slowest_tenth_hours,
  countIf(to_disposition = 'CONFIRMED') as confirmed,
  countIf(to_disposition = 'FALSE_POSITIVE') as false_positive,
  round(confirmed / judged, 3) as confirmed_share
from analytics.dispositions
where tenant_id = {tenant:String}
  and created_at >= {from:DateTime64(3, 'UTC')} and created_at < {to:DateTime64(3, 'UTC')}
  and is_first
group by actor
order by judged desc, actor
limit 500
