-- Which users signed in on a device after its case was confirmed as fraud?
--
-- Answer: one row per user and device: when the case was confirmed, when the user came to the
-- device, and since when the user is known elsewhere. A user with a good history on another phone
-- has probably lost the account.
-- Do: lock the account and contact its owner over a channel that was known before the move.
select
  pairs.user_id as user_id,
  pairs.device_id as device_id,
  cases.alert_id as alert_id,
  cases.confirmed_at as case_confirmed_at,
  pairs.first_seen_at as moved_at,
  known.since as known_since
from analytics.user_devices as pairs
join (
  select
    device_id,
    min(assumeNotNull(disposition_changed_at)) as confirmed_at,
    argMin(alert_id, (disposition_changed_at, alert_id)) as alert_id
  from analytics.alerts
  where tenant_id = {tenant:String} and disposition = 'CONFIRMED'
  group by device_id
) as cases on cases.device_id = pairs.device_id
join (
  select user_id, first_seen_at as since
  from analytics.users
  where tenant_id = {tenant:String}
) as known on known.user_id = pairs.user_id
where pairs.tenant_id = {tenant:String}
  and pairs.first_seen_at >= {from:DateTime64(3, 'UTC')}
  and pairs.first_seen_at < {to:DateTime64(3, 'UTC')}
  and pairs.first_seen_at > cases.confirmed_at
  and known.since < pairs.first_seen_at
order by moved_at desc, user_id, device_id
limit 500
