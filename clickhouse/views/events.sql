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
  rasp_score UInt8 comment 'The score of the signals alone, 0 to 100, made at the edge by the policy.',
  rasp_action LowCardinality(String) comment 'ALLOW, REVIEW or BLOCK: what the score leads to.',
  flags Array(LowCardinality(String)) comment 'The codes of the reasons behind the score.',
  reasons String comment 'JSON text: a list of code, weight and evidence.',
  policy_version UInt32 comment 'The version of the tenant''s policy that scored it.',
  policy_hash LowCardinality(String) comment 'The content address of that policy.',
  client_score Float64
    comment 'The client''s own score: advisory; none where negative or client_action is empty.',
  client_action LowCardinality(String)
    comment 'The client''s own action: advisory; empty where the client computes no score.',
  client_flags Array(LowCardinality(String)) comment 'The client''s own flags: advisory.',
  detected_signals Array(LowCardinality(String))
    comment 'category.signal of every boolean signal that the client found detected, sorted.',
  unknown_signals Array(LowCardinality(String))
    comment 'category.signal of what the catalog does not know, at most 32.',
  signals JSON(max_dynamic_paths = 256, max_dynamic_types = 2)
    comment 'All signals of the client, by path: signals.root.su_binary.',
  body String comment 'The submission, byte for byte.',
  platform_sent LowCardinality(String) comment 'The platform as the SDK spells it.',
  {{optional_columns}},
  {{decided_columns}},
  server_signals JSON(max_dynamic_paths = 64, max_dynamic_types = 2)
    comment 'What the service itself saw or verified, by path: server_signals.attestation.verified. No client can send it.',
  detected_server_signals Array(LowCardinality(String))
    comment 'category.signal of every boolean one of these that is true and says that something is wrong, sorted.',
  {{connection_columns}},
  connection_address_hash String
    comment 'The full address under a key of the tenant, so that equal addresses are equal here.',
  connection_address String
    comment 'The full address, where the tenant keeps it; empty otherwise. It is in no other view, and whoever may query this one sees it.',
  connection_latitude Nullable(Float32)
    comment 'Of the address''s city, in degrees; null when no database knows it.',
  connection_longitude Nullable(Float32) comment 'The same.'
) as
with {{decided_bits}} as decided_bits
select
  tenant_id, received_at, device_id, session_id, user_id, account_id, event_id, occurred_at,
  {{platform}} as platform,
  sdk_version, batch_type, rasp_score, rasp_action, flags, reasons, policy_version,
  policy_hash, client_score, client_action, client_flags, detected_signals, unknown_signals,
  signals, body, telemetry.platform as platform_sent, {{optional_values}},
  {{decided_values}},
  server_signals, detected_server_signals, {{connection_values}},
  connection_address_hash, connection_address,
  if(isNaN(telemetry.connection_latitude), null, telemetry.connection_latitude)
    as connection_latitude,
  if(isNaN(telemetry.connection_longitude), null, telemetry.connection_longitude)
    as connection_longitude
from telemetry final
-- A redelivered event is the same row of the same month, so months need not be read together.
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment 'Every accepted event once, however often it was redelivered. A client that repeats the same bytes in a later month (UTC) is counted in that month too. Cheap by tenant with device, with time (months are skipped whole), with user or account.';
