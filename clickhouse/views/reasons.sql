create or replace view {analytics:Identifier}.reasons (
  tenant_id LowCardinality(String) comment 'The tenant.',
  created_at DateTime64(3, 'UTC') comment 'When the alert was raised.',
  alert_id String comment 'The alert.',
  device_id String comment 'The alert''s device.',
  session_id String comment 'The alert''s session.',
  user_id String comment 'The alert''s user; empty when none.',
  action LowCardinality(String) comment 'REVIEW or BLOCK.',
  disposition LowCardinality(String) comment 'The alert''s current disposition.',
  code LowCardinality(String) comment 'The flag.',
  weight Float64 comment 'Its part of the risk score; an alert''s weights add up to it.',
  evidence String comment 'JSON text: what it was seen from.',
  signals Array(String) comment 'The signals that it was seen from, as category.signal, sorted.',
  metric LowCardinality(String)
    comment 'What was counted of the device''s past, such as users_per_device; empty for signals.',
  counted Nullable(Float64) comment 'The count, or the difference, of that metric.',
  threshold Nullable(Float64) comment 'The policy''s threshold of that metric.',
  time_window LowCardinality(String)
    comment 'The time in which it was counted, such as 30d; event for the event alone.'
) as
select
  tenant_id, created_at, alert_id, device_id, session_id, user_id, action, disposition, code,
  weight, evidence, seen.signals as signals, seen.metric as metric, seen.count as counted,
  seen.threshold as threshold, seen.window as time_window
from (
  select
    tenant_id, created_at, alert_id, device_id, session_id, user_id, action, disposition, code,
    weight, evidence,
    JSONExtract(
      evidence,
      'Tuple(signals Array(String), metric String, count Nullable(Float64), threshold Nullable(Float64), window String)'
    ) as seen
  from alerts_replica final
  array join reason_codes as code, reason_weights as weight, reason_evidence as evidence
)
comment 'One row for every reason of an alert. Cheap as alerts is.';
