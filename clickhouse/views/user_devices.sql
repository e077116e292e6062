create or replace view {analytics:Identifier}.user_devices (
  tenant_id LowCardinality(String) comment 'The tenant.',
  user_id String comment 'The user or account, as clients named it.',
  device_id String comment 'The device.',
  first_seen_at DateTime64(3, 'UTC') comment 'When the user was first seen on the device.',
  last_seen_at DateTime64(3, 'UTC') comment 'When the user was last seen on the device.',
  risk_score UInt8 comment 'The highest risk score of the user''s events on the device.'
) as
select
  tenant_id, user_id, device_id, first_seen_at, last_seen_at, peak_risk_score as risk_score
from user_devices final
where not is_placeholder
comment 'Which user or account was seen on which device, and when first and last. Placeholder ids such as unknown or null, of a user or a device, link nothing and are left out; events has them. Cheap by tenant with user.';
