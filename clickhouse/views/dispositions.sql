create or replace view {analytics:Identifier}.dispositions (
  tenant_id LowCardinality(String) comment 'The tenant.',
  created_at DateTime64(3, 'UTC') comment 'When the alert was raised.',
  alert_id String comment 'The alert.',
  device_id String comment 'The alert''s device.',
  user_id String comment 'The alert''s user; empty when none.',
  action LowCardinality(String) comment 'REVIEW or BLOCK.',
  at DateTime64(3, 'UTC') comment 'When the disposition was changed.',
  from_disposition LowCardinality(String) comment 'What it was.',
  to_disposition LowCardinality(String) comment 'What it became.',
  actor String comment 'Who changed it.',
  note String comment 'What was noted; empty when nothing.',
  session_id String comment 'The alert''s session.',
  risk_score UInt8 comment 'The alert''s risk score.',
  seconds_after_raised Float64 comment 'From when the alert was raised to this change.',
  is_first Bool comment 'Whether it is the first change of its alert.',
  is_last Bool comment 'Whether it is the last change of its alert so far.'
) as
select
  tenant_id, created_at, alert_id, device_id, user_id, action, at, from_disposition,
  to_disposition, actor, note, session_id, risk_score,
  dateDiff('millisecond', created_at, at) / 1000 as seconds_after_raised,
  toBool(number = 1) as is_first, toBool(number = length(disposition_at)) as is_last
from alerts_replica final
array join
  disposition_at as at, disposition_from as from_disposition, disposition_to as to_disposition,
  disposition_actor as actor, disposition_note as note, arrayEnumerate(disposition_at) as number
comment 'One row for every change of an alert''s disposition. Cheap as alerts is.';
