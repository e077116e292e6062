-- Installs: each registration of an app's installation with what the edge verified of it, and what
-- the order of registrations and events tells: keys on several devices, counters that did not rise,
-- events that came again.

-- Every registration. A redelivered one is the same row; a merge keeps the first of equal ones.
create table if not exists installs (
  tenant_id LowCardinality(String),
  device_id String,
  -- SHA-256 of the install token in base64url, 22 characters.
  token_id String,
  -- Where it is in the telemetry stream, among the events.
  stream_offset UInt64 codec(Delta, ZSTD(1)),
  received_at DateTime64(3, 'UTC') codec(Delta, ZSTD(1)),
  -- Empty when the app named none.
  platform LowCardinality(String),
  app_id LowCardinality(String),
  provider LowCardinality(String),
  verdict Enum8('none' = 0, 'verified' = 1, 'rejected' = 2),
  -- Of the first failed step; empty unless rejected.
  reason LowCardinality(String),
  level LowCardinality(String),
  -- SHA-256 of the public key in base64url; empty without one.
  attested_key String,
  -- The certificates from the key's issuer up, without the root.
  issuers Array(String),
  remotely_provisioned Bool,
  device_model LowCardinality(String),
  root_epoch UInt32,
  expires_at DateTime64(3, 'UTC') codec(Delta, ZSTD(1)),
  row_version UInt64 materialized 18446744073709551615 - stream_offset
)
engine = ReplacingMergeTree(row_version)
partition by toYYYYMM(received_at)
order by (tenant_id, device_id, token_id)
settings merge_selector_base = 10;

-- On which devices or models a key was registered: one row each, with the first stream offset. The
-- scorer reads it with the activity of a batch. Keys and what they are on are hashes.
--
-- Only verified registrations count, since anybody can send another phone's certificates beside a
-- key of his own. Of a chain only the certificate that signed the key counts: those above it belong
-- to a maker. App Attest has one for all phones. So a phone has one row or two, and a certificate of
-- a factory's batch has one for each model.
create table if not exists install_keys (
  tenant_id LowCardinality(String),
  -- The first 8 bytes of SHA-256 of the kind and the key; the scorer computes the same.
  key_hash UInt64,
  kind Enum8('key' = 1, 'remote_issuer' = 2, 'issuer' = 3),
  -- As in `activity` of the device, or of the model for an issuer.
  subject_hash UInt64,
  -- Of an attested key, the key_hash of its issuer; 0 without one.
  issuer_hash UInt64,
  stream_offset SimpleAggregateFunction(min, UInt64),
  last_seen_at SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
engine = AggregatingMergeTree
primary key (tenant_id, key_hash)
order by (tenant_id, key_hash, kind, subject_hash, issuer_hash)
settings
  -- Read by key: small granules, in wide parts.
  index_granularity = 256,
  min_compress_block_size = 4096,
  max_compress_block_size = 16384,
  min_bytes_for_wide_part = 524288;

-- A key may lie on another shard than its device: all keys of a tenant are on one, so that a key and
-- its issuer are.
create materialized view if not exists install_keys_of_installs to {all:Identifier}.install_keys as
select
  tenant_id,
  reinterpretAsUInt64(SHA256(concat(seen.1, ' ', seen.2))) as key_hash,
  seen.1 as kind,
  seen.3 as subject_hash,
  seen.4 as issuer_hash,
  stream_offset,
  received_at as last_seen_at
from (
  select
    tenant_id,
    stream_offset,
    received_at,
    attested_key,
    device_model,
    reinterpretAsUInt64(SHA256(concat('device ', device_id))) as device_hash,
    if(provider = 'key_attestation', issuers[1], '') as issuer,
    if(remotely_provisioned, 'remote_issuer', 'issuer') as issuer_kind,
    if(issuer = '', 0, reinterpretAsUInt64(SHA256(concat(issuer_kind, ' ', issuer)))) as own_issuer
  from installs
  where verdict = 'verified' and attested_key != ''
)
array join arrayConcat(
  [('key', attested_key, device_hash, own_issuer)],
  if(
    issuer = '' or (issuer_kind = 'issuer' and device_model = ''),
    [],
    [(
      issuer_kind,
      issuer,
      if(
        issuer_kind = 'issuer',
        reinterpretAsUInt64(SHA256(concat('model ', device_model))),
        device_hash
      ),
      toUInt64(0)
    )]
  )
) as seen;

-- Events whose bytes came again long after their first copy: one row for each event and hour, its
-- first such copy, however many came. Scorers write it before they acknowledge the copy.
create table if not exists replays (
  tenant_id LowCardinality(String),
  device_id String,
  session_id String,
  event_id String,
  hour DateTime('UTC'),
  -- Of the copy.
  stream_offset UInt64 codec(Delta, ZSTD(1)),
  received_at DateTime64(3, 'UTC') codec(Delta, ZSTD(1)),
  first_received_at DateTime64(3, 'UTC'),
  -- Empty when the client sent none.
  user_id String,
  account_id String,
  row_version UInt64 materialized 18446744073709551615 - stream_offset
)
engine = ReplacingMergeTree(row_version)
partition by toYYYYMM(received_at)
order by (tenant_id, device_id, session_id, event_id, hour);

-- The install whose key signed an event; empty when the tenant's own secret did.
alter table telemetry
  add column if not exists install_token String,
  add column if not exists attested_key String,
  -- Of the App Attest assertion that came with the event; 0 without one.
  add column if not exists assertion_counter UInt32;

-- As before, and of a device's events the assertion where a session's have their device: the first
-- 32 bits of the key's hash above the counter.
alter table activity_of_telemetry modify query
select
  tenant_id,
  reinterpretAsUInt64(SHA256(concat(key.1, ' ', key.2))) as key_hash,
  stream_offset,
  received_at,
  reinterpretAsUInt64(SHA256(event_id)) as event_hash,
  toFixedString(
    concat(
      toFixedString(
        multiIf(
          key.1 = 'device',
          concat(
            reinterpretAsFixedString(sipHash64(session_id)),
            reinterpretAsFixedString(
              if(user_id = '' or has(placeholder_ids, 'user_id'), 0, sipHash64(user_id))
            ),
            reinterpretAsFixedString(
              if(account_id = '' or has(placeholder_ids, 'account_id'), 0, sipHash64(account_id))
            ),
            reinterpretAsFixedString(sipHash64(lower(platform))),
            reinterpretAsFixedString(detected_bits),
            reinterpretAsFixedString(clean_bits),
            toFixedString('', 8),
            reinterpretAsFixedString(
              if(
                assertion_counter = 0,
                toUInt64(0),
                bitOr(
                  bitAnd(reinterpretAsUInt64(SHA256(attested_key)), 18446744069414584320),
                  toUInt64(assertion_counter)
                )
              )
            )
          ),
          key.1 = 'user',
          concat(
            repeat('\0', 48),
            reinterpretAsFixedString(if(has(placeholder_ids, 'device_id'), 0, sipHash64(device_id)))
          ),
          concat(
            repeat('\0', 56),
            reinterpretAsFixedString(if(has(placeholder_ids, 'device_id'), 0, sipHash64(device_id)))
          )
        ),
        64
      ),
      reinterpretAsFixedString(event_hash),
      reinterpretAsFixedString(toUnixTimestamp64Milli(received_at))
    ),
    80
  ) as packed_facts
from telemetry
array join arrayConcat(
  [('device', device_id), ('session', session_id)],
  arrayMap(
    id -> ('user', id),
    arrayDistinct(arrayFilter(id -> id != '', [user_id, account_id]))
  )
) as key;
