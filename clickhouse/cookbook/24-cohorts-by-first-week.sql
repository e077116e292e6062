-- Of the devices that came in one week, how many stayed, and how many raised an alert?
--
-- Answer: one row per week of first use: its devices, those still in use a week and four weeks
-- later, and those with a first alert within a day, a week and at any time. Good installs stay and
-- raise nothing. A cohort that alerts within a day was made for fraud.
-- Do: look at the campaign or the release of a week whose devices alert early and do not stay.
select
  toMonday(first_seen_at) as week,
  count() as devices,
  countIf(last_seen_at >= first_seen_at + interval 7 day) as used_after_a_week,
  countIf(last_seen_at >= first_seen_at + interval 28 day) as used_after_four_weeks,
  countIf(first_alert_at < first_seen_at + interval 1 day) as alerted_within_a_day,
  countIf(first_alert_at < first_seen_at + interval 7 day) as alerted_within_a_week,
  countIf(first_alert_at is not null) as alerted
from analytics.devices
left join (
  select device_id, toNullable(min(created_at)) as first_alert_at
  from analytics.alerts
  where tenant_id = {tenant:String}
  group by device_id
) as raised using (device_id)
where tenant_id = {tenant:String}
  and first_seen_at >= {from:DateTime64(3, 'UTC')} and first_seen_at < {to:DateTime64(3, 'UTC')}
group by week
order by week
limit 1000
