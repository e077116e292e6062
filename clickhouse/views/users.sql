create or replace view {analytics:Identifier}.users (
  tenant_id LowCardinality(String) comment 'The tenant.',
  user_id String comment 'The user or account, as clients named it.',
  first_seen_at DateTime64(3, 'UTC') comment 'When its first event was received.',
  last_seen_at DateTime64(3, 'UTC') comment 'When its last event was received.',
  devices UInt64 comment 'On how many devices it was seen.',
  risk_score UInt8 comment 'The highest risk score of its events, by which alerts are raised.'
) as
select
  tenant_id, user_id, min(user_devices.first_seen_at) as first_seen_at,
  max(user_devices.last_seen_at) as last_seen_at, count() as devices,
  max(peak_risk_score) as risk_score
from user_devices final
where not is_placeholder
group by tenant_id, user_id
comment 'Every user and account that was ever seen on a device, without placeholder ids such as unknown or null. Cheap by tenant with user.';
