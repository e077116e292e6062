create or replace view {analytics:Identifier}.deliveries (
  tenant_id LowCardinality(String) comment 'The tenant.',
  created_at DateTime64(3, 'UTC') comment 'When it was to be delivered first.',
  delivery_id String comment 'The delivery: receivers see it as X-Service-Delivery.',
  alert_id String comment 'The alert; empty for a test.',
  device_id String comment 'The alert''s device; empty for a test.',
  user_id String comment 'The alert''s user; empty when none.',
  event LowCardinality(String) comment 'risk.alert, alert.updated or webhook.test.',
  state LowCardinality(String) comment 'pending, delivered, failed or skipped.',
  reason LowCardinality(String) comment 'Why it ended undelivered; empty otherwise.',
  ended_at Nullable(DateTime64(3, 'UTC')) comment 'When it ended; null while it is pending.',
  attempts UInt32 comment 'How many attempts were made.',
  attempt_at Array(DateTime64(3, 'UTC')) comment 'When each attempt was made.',
  attempt_duration_ms Array(UInt32) comment 'How long each attempt took.',
  attempt_status Array(Nullable(UInt16))
    comment 'The receiver''s HTTP status of each attempt; null when no answer came.',
  attempt_error_kind Array(LowCardinality(String))
    comment 'Why each attempt failed; empty for one that succeeded.'
) as
select
  tenant_id, created_at, delivery_id, alert_id, device_id, user_id, event, state, reason, ended_at,
  length(attempt_at) as attempts, attempt_at, attempt_duration_ms, attempt_status,
  attempt_error_kind
from deliveries_replica final
comment 'Every delivery with its attempts, oldest first. Neither addresses nor answers are here. Copied from the service''s own database: freshness says up to when. Cheap by tenant with time, and with device, user or alert.';
