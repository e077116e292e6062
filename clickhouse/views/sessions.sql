create or replace view {analytics:Identifier}.sessions (
  tenant_id LowCardinality(String) comment 'The tenant.',
  device_id String comment 'The device.',
  session_id String comment 'The session, unique within its device.',
  started_at DateTime64(3, 'UTC') comment 'When its first event was received.',
  last_seen_at DateTime64(3, 'UTC') comment 'When its last event was received.',
  rasp_score UInt8 comment 'Its highest score.',
  rasp_action LowCardinality(String) comment 'The action of its highest score.',
  flags Array(String) comment 'The flags of its highest score.',
  users Array(String) comment 'Every user and account that it named, sorted.'
) as
select
  tenant_id, device_id, session_id, started_at, last_seen_at,
  verdict.score as rasp_score, verdict.action as rasp_action, verdict.flags as flags,
  arraySort(users) as users
-- FINAL does not aggregate a part of a tuple that is read alone: it takes that of the first row.
from (
  select tenant_id, device_id, session_id, started_at, last_seen_at, verdict, users
  from sessions final
)
comment 'Every session of every device. Cheap by tenant with device and session; by time it reads two narrow columns of the tenant''s sessions.';
