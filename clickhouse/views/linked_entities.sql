create or replace view {analytics:Identifier}.linked_entities (
  tenant_id LowCardinality(String) comment 'The tenant.',
  created_at DateTime64(3, 'UTC') comment 'When the confirmed alert was raised.',
  alert_id String comment 'The confirmed alert.',
  confirmed_at Nullable(DateTime64(3, 'UTC')) comment 'When it was confirmed.',
  case_device_id String comment 'The device of the alert.',
  user_id String comment 'A user or account that was seen on the case''s device.',
  device_id String comment 'A device of that user: the case''s own, or another.',
  relation LowCardinality(String)
    comment 'case device: the user on the case''s device. other device: where else the user was seen.',
  first_seen_at DateTime64(3, 'UTC') comment 'When the user was first seen on the device.',
  last_seen_at DateTime64(3, 'UTC') comment 'When the user was last seen on the device.',
  alerts UInt64 comment 'How many alerts the device has.',
  confirmed UInt64 comment 'Of those, how many were CONFIRMED.'
) as
select
  cases.tenant_id as tenant_id,
  cases.created_at as created_at,
  cases.alert_id as alert_id,
  if(empty(cases.disposition_at), null, cases.disposition_at[-1]) as confirmed_at,
  cases.device_id as case_device_id,
  pairs.user_id as user_id,
  pairs.device_id as device_id,
  if(pairs.device_id = cases.device_id, 'case device', 'other device') as relation,
  pairs.first_seen_at as first_seen_at,
  pairs.last_seen_at as last_seen_at,
  raised.alerts as alerts,
  raised.confirmed as confirmed
from (
  select tenant_id, created_at, alert_id, device_id, disposition_at
  from alerts_replica final
  where disposition = 'CONFIRMED'
) as cases
join (
  select tenant_id, device_id, user_id from user_devices final where not is_placeholder
) as seen on seen.tenant_id = cases.tenant_id and seen.device_id = cases.device_id
join (
  select tenant_id, user_id, device_id, first_seen_at, last_seen_at
  from user_devices final
  where not is_placeholder
) as pairs on pairs.tenant_id = seen.tenant_id and pairs.user_id = seen.user_id
left join (
  select
    tenant_id, device_id, count() as alerts, countIf(disposition = 'CONFIRMED') as confirmed
  from alerts_replica final
  group by tenant_id, device_id
) as raised on raised.tenant_id = pairs.tenant_id and raised.device_id = pairs.device_id
comment 'Who and what is around a confirmed case: the users seen on its device, and the other devices of those users with their alerts. A device without a user has no row, and placeholder ids such as unknown or null link nothing. Cheap by tenant with time or alert.';
