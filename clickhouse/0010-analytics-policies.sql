-- Views about policies in practice: how often flags, reasons and signals are right by the
-- dispositions of alerts, entities linked to confirmed cases, prevalence spikes, and decisions of
-- shadow policies.

create or replace view {analytics:Identifier}.precision_by_flag (
  tenant_id LowCardinality(String) comment 'The tenant.',
  flag String comment 'A code of alerts'' reasons.',
  alerts UInt64 comment 'How many alerts have it.',
  confirmed UInt64 comment 'Of those, how many were CONFIRMED.',
  false_positive UInt64 comment 'Of those, how many were a FALSE_POSITIVE.',
  judged UInt64 comment 'confirmed + false_positive.',
  precision Nullable(Float64) comment 'confirmed / judged; null where fewer than 10 were judged.',
  precision_low Float64 comment 'The true precision is above this with 97.5 % confidence.',
  precision_high Float64 comment 'The true precision is below this with 97.5 % confidence.',
  base_precision Nullable(Float64) comment 'confirmed / judged of all of the tenant''s alerts.',
  lift Nullable(Float64) comment 'precision / base_precision: above 1 is better than the average alert.'
) as
select
  tenant_id, flag, alerts, confirmed, false_positive, judged,
  if(judged >= 10, confirmed / judged, null) as precision,
  greatest(0, (confirmed + 1.9207) / (judged + 3.8415) - 1.96
    * sqrt(if(judged = 0, 0, confirmed * false_positive / judged) + 0.9604) / (judged + 3.8415))
    as precision_low,
  least(1, (confirmed + 1.9207) / (judged + 3.8415) + 1.96
    * sqrt(if(judged = 0, 0, confirmed * false_positive / judged) + 0.9604) / (judged + 3.8415))
    as precision_high,
  base.precision as base_precision,
  if(base.precision > 0, precision / base.precision, null) as lift
from (
  select
    tenant_id, flag, count() as alerts, countIf(disposition = 'CONFIRMED') as confirmed,
    countIf(disposition = 'FALSE_POSITIVE') as false_positive,
    confirmed + false_positive as judged
  from alerts_replica final
  array join arrayDistinct(reason_codes) as flag
  group by tenant_id, flag
) as counted
left join (
  select
    tenant_id,
    countIf(disposition = 'CONFIRMED')
      / nullIf(countIf(disposition in ('CONFIRMED', 'FALSE_POSITIVE')), 0) as precision
  from alerts_replica final
  group by tenant_id
) as base using (tenant_id)
comment 'How often each flag is right, of the alerts that people have judged. The bounds are Wilson''s: few judgements give a wide range, never a certainty. Cheap by tenant.';

create or replace view {analytics:Identifier}.precision_by_reason (
  tenant_id LowCardinality(String) comment 'The tenant.',
  reason String comment 'The code of the reason.',
  seen_from Array(String)
    comment 'The signals that it was seen from together, sorted; of the device''s past, the metric.',
  alerts UInt64 comment 'How many alerts have it from just these.',
  confirmed UInt64 comment 'Of those, how many were CONFIRMED.',
  false_positive UInt64 comment 'Of those, how many were a FALSE_POSITIVE.',
  judged UInt64 comment 'confirmed + false_positive.',
  precision Nullable(Float64) comment 'confirmed / judged; null where fewer than 10 were judged.',
  precision_low Float64 comment 'The true precision is above this with 97.5 % confidence.',
  precision_high Float64 comment 'The true precision is below this with 97.5 % confidence.',
  base_precision Nullable(Float64) comment 'confirmed / judged of all of the tenant''s alerts.',
  lift Nullable(Float64) comment 'precision / base_precision: above 1 is better than the average alert.'
) as
select
  tenant_id, reason, seen_from, alerts, confirmed, false_positive, judged,
  if(judged >= 10, confirmed / judged, null) as precision,
  greatest(0, (confirmed + 1.9207) / (judged + 3.8415) - 1.96
    * sqrt(if(judged = 0, 0, confirmed * false_positive / judged) + 0.9604) / (judged + 3.8415))
    as precision_low,
  least(1, (confirmed + 1.9207) / (judged + 3.8415) + 1.96
    * sqrt(if(judged = 0, 0, confirmed * false_positive / judged) + 0.9604) / (judged + 3.8415))
    as precision_high,
  base.precision as base_precision,
  if(base.precision > 0, precision / base.precision, null) as lift
from (
  select
    tenant_id, reason,
    if(
      JSONHas(evidence, 'signals'),
      arraySort(JSONExtract(evidence, 'signals', 'Array(String)')),
      arrayFilter(metric -> metric != '', [JSONExtractString(evidence, 'metric')])
    ) as seen_from,
    count() as alerts, countIf(disposition = 'CONFIRMED') as confirmed,
    countIf(disposition = 'FALSE_POSITIVE') as false_positive,
    confirmed + false_positive as judged
  from alerts_replica final
  array join reason_codes as reason, reason_evidence as evidence
  group by tenant_id, reason, seen_from
) as counted
left join (
  select
    tenant_id,
    countIf(disposition = 'CONFIRMED')
      / nullIf(countIf(disposition in ('CONFIRMED', 'FALSE_POSITIVE')), 0) as precision
  from alerts_replica final
  group by tenant_id
) as base using (tenant_id)
comment 'How often each reason is right, by the signal behind it: a flag can be right for one signal and wrong for another. Cheap by tenant.';

create or replace view {analytics:Identifier}.precision_by_signal (
  tenant_id LowCardinality(String) comment 'The tenant.',
  signal String comment 'category.signal, as the reasons of alerts name it.',
  alerts UInt64 comment 'How many alerts have it among their reasons.',
  confirmed UInt64 comment 'Of those, how many were CONFIRMED.',
  false_positive UInt64 comment 'Of those, how many were a FALSE_POSITIVE.',
  judged UInt64 comment 'confirmed + false_positive.',
  precision Nullable(Float64) comment 'confirmed / judged; null where fewer than 10 were judged.',
  precision_low Float64 comment 'The true precision is above this with 97.5 % confidence.',
  precision_high Float64 comment 'The true precision is below this with 97.5 % confidence.',
  base_precision Nullable(Float64) comment 'confirmed / judged of all of the tenant''s alerts.',
  lift Nullable(Float64) comment 'precision / base_precision: above 1 is better than the average alert.'
) as
select
  tenant_id, signal, alerts, confirmed, false_positive, judged,
  if(judged >= 10, confirmed / judged, null) as precision,
  greatest(0, (confirmed + 1.9207) / (judged + 3.8415) - 1.96
    * sqrt(if(judged = 0, 0, confirmed * false_positive / judged) + 0.9604) / (judged + 3.8415))
    as precision_low,
  least(1, (confirmed + 1.9207) / (judged + 3.8415) + 1.96
    * sqrt(if(judged = 0, 0, confirmed * false_positive / judged) + 0.9604) / (judged + 3.8415))
    as precision_high,
  base.precision as base_precision,
  if(base.precision > 0, precision / base.precision, null) as lift
from (
  select
    tenant_id, signal, count() as alerts, countIf(disposition = 'CONFIRMED') as confirmed,
    countIf(disposition = 'FALSE_POSITIVE') as false_positive,
    confirmed + false_positive as judged
  from alerts_replica final
  array join arrayDistinct(arrayFlatten(arrayMap(
    evidence -> JSONExtract(evidence, 'signals', 'Array(String)'), reason_evidence
  ))) as signal
  group by tenant_id, signal
) as counted
left join (
  select
    tenant_id,
    countIf(disposition = 'CONFIRMED')
      / nullIf(countIf(disposition in ('CONFIRMED', 'FALSE_POSITIVE')), 0) as precision
  from alerts_replica final
  group by tenant_id
) as base using (tenant_id)
comment 'How often each signal is right, of the alerts that it took part in. Signals without a weight in the policy take part in none. Cheap by tenant.';

create or replace view {analytics:Identifier}.around_confirmed (
  tenant_id LowCardinality(String) comment 'The tenant.',
  created_at DateTime64(3, 'UTC') comment 'When the confirmed alert was raised.',
  alert_id String comment 'The confirmed alert.',
  confirmed_at Nullable(DateTime64(3, 'UTC')) comment 'When it was confirmed.',
  case_device_id String comment 'The device of the alert.',
  user_id String comment 'A user or account that was seen on the case''s device.',
  device_id String comment 'A device of that user: the case''s own, or another.',
  relation LowCardinality(String)
    comment 'case device: the user on the case''s device. other device: where else the user was seen.',
  first_seen_at DateTime64(3, 'UTC') comment 'When the user was first seen on the device.',
  last_seen_at DateTime64(3, 'UTC') comment 'When the user was last seen on the device.',
  alerts UInt64 comment 'How many alerts the device has.',
  confirmed UInt64 comment 'Of those, how many were CONFIRMED.'
) as
select
  cases.tenant_id as tenant_id,
  cases.created_at as created_at,
  cases.alert_id as alert_id,
  if(empty(cases.disposition_at), null, cases.disposition_at[-1]) as confirmed_at,
  cases.device_id as case_device_id,
  pairs.user_id as user_id,
  pairs.device_id as device_id,
  if(pairs.device_id = cases.device_id, 'case device', 'other device') as relation,
  pairs.first_seen_at as first_seen_at,
  pairs.last_seen_at as last_seen_at,
  raised.alerts as alerts,
  raised.confirmed as confirmed
from (
  select tenant_id, created_at, alert_id, device_id, disposition_at
  from alerts_replica final
  where disposition = 'CONFIRMED'
) as cases
join (
  select tenant_id, device_id, user_id from user_devices final where not is_placeholder
) as seen on seen.tenant_id = cases.tenant_id and seen.device_id = cases.device_id
join (
  select tenant_id, user_id, device_id, first_seen_at, last_seen_at
  from user_devices final
  where not is_placeholder
) as pairs on pairs.tenant_id = seen.tenant_id and pairs.user_id = seen.user_id
left join (
  select
    tenant_id, device_id, count() as alerts, countIf(disposition = 'CONFIRMED') as confirmed
  from alerts_replica final
  group by tenant_id, device_id
) as raised on raised.tenant_id = pairs.tenant_id and raised.device_id = pairs.device_id
comment 'Who and what is around a confirmed case: the users seen on its device, and the other devices of those users with their alerts. A device without a user has no row, and placeholder ids such as unknown or null link nothing. Cheap by tenant with time or alert.';

create or replace view {analytics:Identifier}.signal_jumps (
  tenant_id LowCardinality(String) comment 'The tenant.',
  platform String comment 'android, ios or another, in lower case.',
  sdk_version String comment 'The SDK''s version.',
  signal String comment 'category.signal',
  started_at DateTime64(3, 'UTC')
    comment 'The beginning of the 24 hours in which the jump was found.',
  checked_at DateTime64(3, 'UTC') comment 'When it was looked at last.',
  ended_at Nullable(DateTime64(3, 'UTC'))
    comment 'When the share was back, or had become the usual; null while it goes on.',
  share Float64 comment 'The share of the version''s devices that had it, in the last 24 hours.',
  earlier_share Nullable(Float64)
    comment 'The same share on the days before; null when the version is new.',
  elsewhere_share Nullable(Float64)
    comment 'The share on the platform''s other versions; null when there is hardly any.',
  z_score Float64
    comment 'How far beyond chance the difference is, in standard deviations: the smaller of both.',
  devices UInt64 comment 'Devices of the version that had it since the jump began.',
  alerts UInt64 comment 'Alerts of those devices since then whose reasons name it.'
) as
select
  tenant_id,
  replaceRegexpOne(
    replaceRegexpOne(trimBoth(lowerUTF8(platform)), '^android.*$', 'android'),
    '^(ios|iphone|ipad).*$', 'ios'
  ) as platform,
  sdk_version, signal, started_at, checked_at, ended_at, share,
  earlier_share, elsewhere_share, z_score, devices, alerts
from prevalence_spikes final
comment 'Signals whose share jumped within one SDK version: mostly a release that is wrong. Found by the console, which looks every hour. Cheap by tenant.';

create or replace view {analytics:Identifier}.shadow_decisions (
  tenant_id LowCardinality(String) comment 'The tenant.',
  received_at DateTime64(3, 'UTC') comment 'When the edge accepted the event.',
  device_id String comment 'The device.',
  session_id String comment 'The session, unique within its device.',
  user_id String comment 'The user that the client named; empty when none.',
  account_id String comment 'The account that the client named; empty when none.',
  event_id String comment 'The event.',
  platform LowCardinality(String) comment 'android, ios or another, in lower case.',
  sdk_version LowCardinality(String) comment 'The SDK''s version.',
  shadow_version UInt32 comment 'The version of the tenant''s shadow policy that decided.',
  shadow_policy_hash LowCardinality(String) comment 'The content address of that policy.',
  shadow_rasp_score UInt8 comment 'What the shadow makes of the signals, 0 to 100.',
  shadow_risk_score UInt8
    comment 'The same raised by what is known of the device and by the shadow''s rules, 0 to 100.',
  shadow_action LowCardinality(String) comment 'ALLOW, REVIEW or BLOCK: what it would have been.',
  shadow_flags Array(LowCardinality(String)) comment 'The codes of the reasons for it, heaviest first.',
  active_policy_version UInt32 comment 'The version of the active policy that decided.',
  active_policy_hash LowCardinality(String) comment 'The content address of that policy.',
  active_rasp_score UInt8 comment 'The event''s score, as the edge answered it.',
  active_risk_score UInt8 comment 'The event''s risk score, as an alert would have it.',
  active_action LowCardinality(String) comment 'ALLOW, REVIEW or BLOCK: what was decided.',
  active_flags Array(LowCardinality(String)) comment 'The codes of the reasons for it, heaviest first.'
) as
select
  tenant_id, received_at, device_id, session_id, user_id, account_id, event_id,
  replaceRegexpOne(
    replaceRegexpOne(trimBoth(lowerUTF8(platform)), '^android.*$', 'android'),
    '^(ios|iphone|ipad).*$', 'ios'
  ) as platform,
  sdk_version, shadow_version, shadow_policy_hash, shadow_rasp_score, shadow_risk_score,
  shadow_action, shadow_flags, active_policy_version, active_policy_hash, active_rasp_score,
  active_risk_score, active_action, active_flags
from shadow_decisions final
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment 'What the tenant''s shadow policy decided for every event, beside the actual decision; it raises no alerts. An alert is one per device, session and action. A repeat of the same bytes was decided when they first came. Cheap by tenant with time, and with device, user or account.';
