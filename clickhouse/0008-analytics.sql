-- The SQL interface of fraud teams: views in a database of their own, whose name follows that of
-- the service's database ({analytics:Identifier}; the migration fills it in). Names and types are
-- stable; new columns are added at the end. Filters by tenant, time, device or user reach the keys
-- of the tables: duplicates are removed by FINAL, which passes a filter through, and not by GROUP
-- BY. SDKs spell a platform in several ways: the views have one spelling, by the same expression.

create database if not exists {analytics:Identifier};

create or replace view {analytics:Identifier}.events (
  tenant_id LowCardinality(String) comment 'The tenant.',
  received_at DateTime64(3, 'UTC') comment 'When the edge accepted it, by the edge''s clock.',
  device_id String comment 'The device.',
  session_id String comment 'The session, unique within its device.',
  user_id String comment 'The user that the client named; empty when none.',
  account_id String comment 'The account that the client named; empty when none.',
  event_id String comment 'The event: the same bytes have the same id.',
  occurred_at Nullable(DateTime64(3, 'UTC')) comment 'The client''s own clock: never trusted.',
  platform LowCardinality(String) comment 'android, ios or another, in lower case.',
  sdk_version LowCardinality(String) comment 'The SDK''s version.',
  batch_type LowCardinality(String) comment 'What the SDK sent it for.',
  rasp_score UInt8 comment 'The server''s score, 0 to 100, made at the edge by the policy.',
  rasp_action LowCardinality(String) comment 'ALLOW, REVIEW or BLOCK: what the score leads to.',
  flags Array(LowCardinality(String)) comment 'The codes of the reasons behind the score.',
  reasons String comment 'JSON text: a list of code, weight and evidence.',
  policy_version UInt32 comment 'The version of the tenant''s policy that scored it.',
  policy_hash LowCardinality(String) comment 'The content address of that policy.',
  client_score Float64 comment 'The client''s own score: advisory.',
  client_action LowCardinality(String) comment 'The client''s own action: advisory.',
  client_flags Array(LowCardinality(String)) comment 'The client''s own flags: advisory.',
  detected_signals Array(LowCardinality(String))
    comment 'category.signal of every boolean signal that was found detected, sorted.',
  unknown_signals Array(LowCardinality(String))
    comment 'category.signal of what the catalog does not know, at most 32.',
  signals JSON(max_dynamic_paths = 256, max_dynamic_types = 2)
    comment 'All signals, by path: signals.root.su_binary.',
  body String comment 'The submission, byte for byte.',
  platform_sent LowCardinality(String) comment 'The platform as the SDK spells it.',
  app_version LowCardinality(String) comment 'The version of the app; empty when none was sent.',
  os_version LowCardinality(String)
    comment 'The version of the operating system; empty when none was sent.',
  device_brand LowCardinality(String) comment 'The maker of the phone; empty when none was sent.',
  device_model LowCardinality(String) comment 'The model of the phone; empty when none was sent.'
) as
select
  tenant_id, received_at, device_id, session_id, user_id, account_id, event_id, occurred_at,
  replaceRegexpOne(
    replaceRegexpOne(trimBoth(lowerUTF8(platform)), '^android.*$', 'android'),
    '^(ios|iphone|ipad).*$', 'ios'
  ) as platform,
  sdk_version, batch_type, rasp_score, rasp_action, flags, reasons, policy_version,
  policy_hash, client_score, client_action, client_flags, detected_signals, unknown_signals,
  signals, body, telemetry.platform as platform_sent, app_version, os_version, device_brand,
  device_model
from telemetry final
-- A redelivered event is the same row of the same month, so months need not be read together.
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment 'Every accepted event once, however often it was redelivered. A client that repeats the same bytes in a later month (UTC) is counted in that month too. Cheap by tenant with device, with time (months are skipped whole), with user or account.';

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

create or replace view {analytics:Identifier}.devices (
  tenant_id LowCardinality(String) comment 'The tenant.',
  device_id String comment 'The device.',
  first_seen_at DateTime64(3, 'UTC') comment 'When its first event was received.',
  last_seen_at DateTime64(3, 'UTC') comment 'When its last event was received.',
  peak_rasp_score UInt8 comment 'The highest score that it ever had.',
  users Array(String) comment 'Every user and account seen on it, sorted.'
) as
select tenant_id, device_id, first_seen_at, last_seen_at, peak_rasp_score, arraySort(users) as users
from devices final
comment 'Every device that was ever seen. Cheap by tenant with device; by time it reads two narrow columns of the tenant''s devices.';

create or replace view {analytics:Identifier}.users (
  tenant_id LowCardinality(String) comment 'The tenant.',
  user_id String comment 'The user or account, as clients named it.',
  first_seen_at DateTime64(3, 'UTC') comment 'When its first event was received.',
  last_seen_at DateTime64(3, 'UTC') comment 'When its last event was received.',
  devices UInt64 comment 'On how many devices it was seen.'
) as
select
  tenant_id, user_id, min(user_devices.first_seen_at) as first_seen_at,
  max(user_devices.last_seen_at) as last_seen_at, count() as devices
from user_devices final
where not is_placeholder
group by tenant_id, user_id
comment 'Every user and account that was ever seen on a device, without placeholder ids such as unknown or null. Cheap by tenant with user.';

create or replace view {analytics:Identifier}.user_devices (
  tenant_id LowCardinality(String) comment 'The tenant.',
  user_id String comment 'The user or account, as clients named it.',
  device_id String comment 'The device.',
  first_seen_at DateTime64(3, 'UTC') comment 'When the user was first seen on the device.',
  last_seen_at DateTime64(3, 'UTC') comment 'When the user was last seen on the device.'
) as
select tenant_id, user_id, device_id, first_seen_at, last_seen_at
from user_devices final
where not is_placeholder
comment 'Which user or account was seen on which device, and when first and last. Placeholder ids such as unknown or null, of a user or a device, link nothing and are left out; events has them. Cheap by tenant with user.';

create or replace view {analytics:Identifier}.user_devices_as_of as
select
  pairs.tenant_id as tenant_id,
  pairs.user_id as user_id,
  pairs.device_id as device_id,
  pairs.first_seen_at as first_seen_at,
  if(
    pairs.last_seen_at <= {as_of:DateTime64(3, 'UTC')},
    pairs.last_seen_at,
    greatest(pairs.first_seen_at, coalesce(seen.last_seen_at, pairs.first_seen_at))
  ) as last_seen_at
from (
  select tenant_id, user_id, device_id, first_seen_at, last_seen_at
  from user_devices final
  where first_seen_at <= {as_of:DateTime64(3, 'UTC')} and not is_placeholder
) as pairs
left join (
  select tenant_id, user_id, device_id, max(received_at) as last_seen_at
  from (
    select tenant_id, user_id, device_id, received_at
    from telemetry final
    where user_id != '' and received_at <= {as_of:DateTime64(3, 'UTC')}
    union all
    select tenant_id, account_id as user_id, device_id, received_at
    from telemetry final
    where account_id != '' and received_at <= {as_of:DateTime64(3, 'UTC')}
  )
  group by tenant_id, user_id, device_id
) as seen on seen.tenant_id = pairs.tenant_id and seen.user_id = pairs.user_id
  and seen.device_id = pairs.device_id
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment 'user_devices as it was at a past instant: user_devices_as_of(as_of = ''2026-01-31 23:59:59.999''), in UTC, with the columns of user_devices. A last_seen_at needs the events of that time: where retention has removed them it is the latest that is still known to be right.';

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
  )) comment 'Every change of its disposition, oldest first.'
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
  ) as history
from alerts_replica final
comment 'Every alert with its current disposition and the history of it. Copied from the service''s own database: freshness says up to when. Cheap by tenant with time, and with device, user or alert.';

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

create or replace view {analytics:Identifier}.event_reasons (
  tenant_id LowCardinality(String) comment 'The tenant.',
  received_at DateTime64(3, 'UTC') comment 'When the event was accepted.',
  device_id String comment 'The device.',
  session_id String comment 'The session, unique within its device.',
  user_id String comment 'The user that the client named; empty when none.',
  account_id String comment 'The account that the client named; empty when none.',
  event_id String comment 'The event.',
  rasp_score UInt8 comment 'The event''s score, 0 to 100.',
  rasp_action LowCardinality(String) comment 'ALLOW, REVIEW or BLOCK: what the score leads to.',
  policy_version UInt32 comment 'The version of the tenant''s policy that scored it.',
  code LowCardinality(String) comment 'The flag.',
  weight Float64 comment 'Its part of the score; an event''s weights add up to it.',
  signals Array(String) comment 'The signals that it was seen from, as category.signal, sorted.'
) as
select
  tenant_id, received_at, device_id, session_id, user_id, account_id, event_id, rasp_score,
  rasp_action, policy_version, reason.code as code, reason.weight as weight,
  reason.evidence.signals as signals
from telemetry final
array join JSONExtract(
  reasons, 'Array(Tuple(code String, weight Float64, evidence Tuple(signals Array(String))))'
) as reason
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment 'One row for every reason behind the score of an event. What an alert adds of the device''s past is in reasons. Cheap as events is.';

create or replace view {analytics:Identifier}.signals (
  tenant_id LowCardinality(String) comment 'The tenant.',
  received_at DateTime64(3, 'UTC') comment 'When the event was accepted.',
  device_id String comment 'The device.',
  session_id String comment 'The session, unique within its device.',
  user_id String comment 'The user that the client named; empty when none.',
  account_id String comment 'The account that the client named; empty when none.',
  event_id String comment 'The event.',
  platform LowCardinality(String) comment 'android, ios or another, in lower case.',
  sdk_version LowCardinality(String) comment 'The SDK''s version.',
  signal LowCardinality(String) comment 'category.signal',
  category LowCardinality(String) comment 'root, emulator, debugger, tamper, ecosystem, network.',
  app_version LowCardinality(String) comment 'The version of the app; empty when none was sent.',
  os_version LowCardinality(String)
    comment 'The version of the operating system; empty when none was sent.',
  device_brand LowCardinality(String) comment 'The maker of the phone; empty when none was sent.',
  device_model LowCardinality(String) comment 'The model of the phone; empty when none was sent.'
) as
select
  tenant_id, received_at, device_id, session_id, user_id, account_id, event_id,
  replaceRegexpOne(
    replaceRegexpOne(trimBoth(lowerUTF8(platform)), '^android.*$', 'android'),
    '^(ios|iphone|ipad).*$', 'ios'
  ) as platform,
  sdk_version, signal, substringIndex(signal, '.', 1) as category, app_version, os_version,
  device_brand, device_model
from telemetry final
array join detected_signals as signal
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment 'One row for every boolean signal that an event found detected: true, or false for tamper.app_attest_valid. Known to the catalog or not. Cheap as events is.';

create or replace view {analytics:Identifier}.signal_share (
  tenant_id LowCardinality(String) comment 'The tenant.',
  day Date comment 'The UTC day.',
  platform LowCardinality(String) comment 'android, ios or another, in lower case.',
  sdk_version LowCardinality(String) comment 'The SDK''s version.',
  signal LowCardinality(String) comment 'category.signal',
  devices UInt64 comment 'Devices of that day, platform and version that had it detected.',
  fleet UInt64 comment 'All devices of that day, platform and version.',
  share Float64 comment 'devices / fleet, 0 to 1.'
) as
select
  tenant_id, day, platform, sdk_version, one.1 as signal, one.2 as devices, fleet,
  devices / fleet as share
from (
  select
    tenant_id, toDate(received_at) as day,
    replaceRegexpOne(
      replaceRegexpOne(trimBoth(lowerUTF8(platform)), '^android.*$', 'android'),
      '^(ios|iphone|ipad).*$', 'ios'
    ) as platform,
    sdk_version,
    uniqExact(sipHash64(device_id)) as fleet,
    uniqExactMap(mapFromArrays(
      cast(detected_signals as Array(String)),
      arrayMap(signal -> sipHash64(device_id), detected_signals)
    )) as by_signal
  from telemetry final
  group by tenant_id, day, platform, sdk_version
)
array join by_signal as one
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment 'On which share of the fleet a signal was detected, by day, platform and SDK version. A signal that was detected nowhere has no row. Cheap by tenant with day.';

create or replace view {analytics:Identifier}.deliveries (
  tenant_id LowCardinality(String) comment 'The tenant.',
  created_at DateTime64(3, 'UTC') comment 'When it was to be delivered first.',
  delivery_id String comment 'The delivery: receivers see it as X-Service-Delivery.',
  alert_id String comment 'The alert; empty for a test.',
  device_id String comment 'The alert''s device; empty for a test.',
  user_id String comment 'The alert''s user; empty when none.',
  event LowCardinality(String) comment 'risk.alert, or webhook.test.',
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

create or replace view {analytics:Identifier}.freshness (
  copied_at DateTime64(3, 'UTC')
    comment 'Alerts, dispositions and deliveries are here as they were committed at this instant.'
) as
select replicated_at as copied_at from replication_rounds final
comment 'Up to when alerts, dispositions, reasons and deliveries are copied. Events are here within a second of being accepted.';
