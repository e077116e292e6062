create or replace view {analytics:Identifier}.devices (
  tenant_id LowCardinality(String) comment 'The tenant.',
  device_id String comment 'The device.',
  first_seen_at DateTime64(3, 'UTC') comment 'When its first event was received.',
  last_seen_at DateTime64(3, 'UTC') comment 'When its last event was received.',
  peak_rasp_score UInt8 comment 'The highest score that it ever had.',
  users Array(String) comment 'Every user and account seen on it, sorted.',
  risk_score UInt8 comment 'The highest risk score of its events, by which alerts are raised.'
) as
select
  tenant_id, device_id, first_seen_at, last_seen_at, peak_rasp_score, arraySort(users) as users,
  peak_risk_score as risk_score
from devices final
comment 'Every device that was ever seen. Cheap by tenant with device; by time it reads two narrow columns of the tenant''s devices.';
