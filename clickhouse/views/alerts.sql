create or replace view {analytics:Identifier}.alerts (
  tenant_id LowCardinality(String) comment 'The tenant.',
  created_at DateTime64(3, 'UTC') comment 'When it was raised.',
  alert_id String comment 'The alert.',
  seq UInt64 comment 'Its number within the tenant, ascending without a gap.',
  device_id String comment 'The device.',
  session_id String comment 'The session, unique within its device.',
  user_id String comment 'The user, or the account, of the event; empty when none.',
  event_id String comment 'The event that raised it.',
  action LowCardinality(String) comment 'REVIEW or BLOCK.',
  severity LowCardinality(String) comment 'LOW, MEDIUM, HIGH or CRITICAL, by the risk score.',
  risk_score UInt8 comment 'The event''s score raised by what is known of the device, 0 to 100.',
  rasp_score UInt8 comment 'The event''s own score, 0 to 100.',
  flags Array(LowCardinality(String)) comment 'The codes of its reasons.',
  policy_version UInt32 comment 'The version of the tenant''s policy that scored the event.',
  disposition LowCardinality(String)
    comment 'Now: OPEN, REVIEWED, FALSE_POSITIVE or CONFIRMED.',
  disposition_changed_at Nullable(DateTime64(3, 'UTC'))
    comment 'When it was set; null for an alert without a disposition.',
  history Array(Tuple(
    at DateTime64(3, 'UTC'), from_disposition String, to_disposition String, actor String,
    note String
  )) comment 'Every change of its disposition, oldest first.',
  updated_at DateTime64(3, 'UTC')
    comment 'When its disposition, its assignee or its notes last changed, or when it was raised.',
  assignee LowCardinality(String)
    comment 'The id of the operator who has it, opr_...; empty while nobody has.',
  {{connection_columns}}
) as
select
  tenant_id, created_at, alert_id, seq, device_id, session_id, user_id, event_id, action,
  multiIf(risk_score < 40, 'LOW', risk_score < 60, 'MEDIUM', risk_score < 80, 'HIGH', 'CRITICAL')
    as severity,
  risk_score, rasp_score, reason_codes as flags, policy_version, disposition,
  if(empty(disposition_at), null, disposition_at[-1]) as disposition_changed_at,
  cast(
    arrayZip(disposition_at, disposition_from, disposition_to, disposition_actor, disposition_note)
    as Array(Tuple(
      at DateTime64(3, 'UTC'), from_disposition String, to_disposition String, actor String,
      note String
    ))
  ) as history,
  coalesce(changed_at, created_at) as updated_at, assignee,
  {{connection_values}}
from alerts_replica final
comment 'Every alert with its current disposition and the history of it. Copied from the service''s own database: freshness says up to when. Cheap by tenant with time, and with device, user or alert.';
