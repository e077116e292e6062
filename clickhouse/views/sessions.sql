create or replace view {analytics:Identifier}.sessions (
  tenant_id LowCardinality(String) comment 'The tenant.',
  device_id String comment 'The device.',
  session_id String comment 'The session, unique within its device.',
  started_at DateTime64(3, 'UTC') comment 'When its first event was received.',
  last_seen_at DateTime64(3, 'UTC') comment 'When its last event was received.',
  rasp_score UInt8 comment 'Its highest score.',
  rasp_action LowCardinality(String) comment 'The action of its highest score.',
  flags Array(String) comment 'The flags of its highest score.',
  users Array(String) comment 'Every user and account that it named, sorted.',
  risk_score UInt8 comment 'The highest risk score of its events, by which alerts are raised.',
  action LowCardinality(String) comment 'ALLOW, REVIEW or BLOCK: the action of its highest risk score.',
  risk_flags Array(String) comment 'The flags of its highest risk score.',
  platform LowCardinality(String) comment 'android, ios or another, in lower case.',
  sdk_version LowCardinality(String) comment 'The SDK''s version.',
  app_version LowCardinality(String) comment 'The version of the app; empty when none was sent.',
  device_model LowCardinality(String) comment 'The model of the phone; empty when none was sent.',
  connection_at Nullable(DateTime64(3, 'UTC'))
    comment 'When its last event with a measured connection was received, of which the next columns are; null when it has none.',
  {{connection_columns}}
) as
select
  tenant_id, device_id, session_id, started_at, last_seen_at,
  verdict.score as rasp_score, verdict.action as rasp_action, verdict.flags as flags,
  arraySort(users) as users, intDiv(risk.rank, 8) as risk_score,
  ['ALLOW', 'REVIEW', 'BLOCK'][1 + bitAnd(bitShiftRight(risk.rank, 1), 3)] as action,
  risk.flags as risk_flags, {{platform}} as platform, client[2] as sdk_version,
  client[3] as app_version, client[4] as device_model,
  if(connection.network = '', null, connection.at) as connection_at,
  {{latest_connection_values}}
-- FINAL does not aggregate a part of a tuple that is read alone: it takes that of the first row.
from (
  select
    tenant_id, device_id, session_id, started_at, last_seen_at, verdict, users, risk, client,
    client[1] as platform, connection
  from sessions final
)
comment 'Every session of every device. Cheap by tenant with device and session; by time it reads two narrow columns of the tenant''s sessions.';
