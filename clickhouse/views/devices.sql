create or replace view {analytics:Identifier}.devices (
  tenant_id LowCardinality(String) comment 'The tenant.',
  device_id String comment 'The device.',
  first_seen_at DateTime64(3, 'UTC') comment 'When its first event was received.',
  last_seen_at DateTime64(3, 'UTC') comment 'When its last event was received.',
  peak_rasp_score UInt8 comment 'The highest score that it ever had.',
  users Array(String) comment 'Every user and account seen on it, sorted.',
  risk_score UInt8 comment 'The highest risk score of its events, by which alerts are raised.',
  connection_at Nullable(DateTime64(3, 'UTC'))
    comment 'When its last event with a measured connection was received, of which the next columns are; null when it has none.',
  {{connection_columns}}
) as
select
  tenant_id, device_id, first_seen_at, last_seen_at, peak_rasp_score, arraySort(users) as users,
  peak_risk_score as risk_score,
  if(connection.network = '', null, connection.at) as connection_at,
  {{latest_connection_values}}
-- FINAL does not aggregate a part of a tuple that is read alone: it takes that of the first row.
from (
  select
    tenant_id, device_id, first_seen_at, last_seen_at, peak_rasp_score, users, peak_risk_score,
    connection
  from devices final
)
comment 'Every device that was ever seen. Cheap by tenant with device; by time it reads two narrow columns of the tenant''s devices.';
