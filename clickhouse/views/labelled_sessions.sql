create or replace view {analytics:Identifier}.labelled_sessions (
  tenant_id LowCardinality(String) comment 'The tenant.',
  device_id String comment 'The device.',
  session_id String comment 'The session, unique within its device.',
  started_at DateTime64(3, 'UTC') comment 'When its first event was received.',
  outcome LowCardinality(String)
    comment 'fraud or legitimate. What was said of the session or its event comes before what was said of its device or user, and fraud before legitimate.',
  label LowCardinality(String) comment 'The latest label of those that decided the outcome.',
  occurred_at DateTime64(3, 'UTC') comment 'When that happened.',
  labelled_at DateTime64(3, 'UTC')
    comment 'When the first label that says so came: labels come late, so a young session may get one yet.',
  latest_labelled_at DateTime64(3, 'UTC') comment 'When the latest of them came.',
  label_ids Array(String)
    comment 'All labels that cover it, and its alerts that are CONFIRMED or FALSE_POSITIVE.',
  losses Map(LowCardinality(String), Decimal(38, 4))
    comment 'The money that was lost by currency. A loss counts once, at the last fraudulent session that its label covers.',
  last_seen_at DateTime64(3, 'UTC') comment 'When its last event was received.',
  users Array(String) comment 'Every user and account that it named, sorted.',
  rasp_score UInt8 comment 'Its highest score.',
  flags Array(String) comment 'The flags of its highest score.',
  risk_score UInt8 comment 'The highest risk score of its events, by which alerts are raised.',
  action LowCardinality(String) comment 'ALLOW, REVIEW or BLOCK: the action of its highest risk score.',
  risk_flags Array(String) comment 'The flags of its highest risk score.',
  platform LowCardinality(String) comment 'android, ios or another, in lower case.',
  sdk_version LowCardinality(String) comment 'The SDK''s version.',
  app_version LowCardinality(String) comment 'The version of the app; empty when none was sent.'
) as
select
  tenant_id, device_id, session_id, started_at, outcome, label, occurred_at, labelled_at,
  latest_labelled_at, label_ids, losses, last_seen_at, arraySort(users) as users,
  verdict.score as rasp_score, verdict.flags as flags, intDiv(risk.rank, 8) as risk_score,
  ['ALLOW', 'REVIEW', 'BLOCK'][1 + bitAnd(bitShiftRight(risk.rank, 1), 3)] as action,
  risk.flags as risk_flags, {{platform}} as platform, client[2] as sdk_version,
  client[3] as app_version
from (
  select *, client[1] as platform
  from ({{labelled_sessions}})
)
comment 'What every session turned out to be of which something is known: by labels, and by alerts that are CONFIRMED or FALSE_POSITIVE. Cheap by tenant; it reads all of the tenant''s sessions and labels.';
