-- The decision of an event where it differs from the edge's: velocity and the rest of what is known
-- of a device, a user and a session raise its score. An event without a row was decided as the edge
-- scored it: its risk score is its rasp_score, or what a list made of it. A decision is never below
-- that. Scorers write it before they acknowledge the event; a redelivered event is the same row.

create table if not exists decisions (
  tenant_id LowCardinality(String),
  device_id String,
  session_id String,
  event_id String,
  stream_offset UInt64 codec(Delta, ZSTD(1)),
  received_at DateTime64(3, 'UTC') codec(Delta, ZSTD(1)),
  -- Empty when the client sent none.
  user_id String,
  account_id String,
  rasp_score UInt8,
  risk_score UInt8,
  action Enum8('ALLOW' = 0, 'REVIEW' = 1, 'BLOCK' = 2),
  flags Array(LowCardinality(String)),
  -- JSON text: [{"code","weight","evidence"}], as in an alert. Counts are in the evidence.
  reasons String codec(ZSTD(1))
)
engine = ReplacingMergeTree
partition by toYYYYMM(received_at)
order by (tenant_id, device_id, session_id, event_id)
settings merge_selector_base = 10;

-- The highest risk of a session's events: its rank, which is 8 * risk score + 2 * action + 1 for a
-- row of decisions, and its flags. So of one event the decision comes before what the edge made of
-- it, and the order is total.
alter table sessions
  add column if not exists risk SimpleAggregateFunction(max, Tuple(
    rank UInt16,
    flags Array(String)
  )),
  -- What the app says of itself: platform, SDK version, app version and phone model. A session is
  -- one launch, so its events say the same; where one lacks something, the greater has it.
  add column if not exists client SimpleAggregateFunction(max, Array(String));

alter table devices
  add column if not exists peak_risk_score SimpleAggregateFunction(max, UInt8);

alter table user_devices
  add column if not exists peak_risk_score SimpleAggregateFunction(max, UInt8);

-- What the edge made of an event, as `toEdgeRisk` has it.
alter table sessions_of_telemetry modify query
select
  tenant_id,
  device_id,
  session_id,
  received_at as started_at,
  received_at as last_seen_at,
  (rasp_score, rasp_action, flags) as verdict,
  arrayFilter(id -> id != '', [user_id, account_id]) as users,
  (toUInt16(8 * multiIf(
    has(flags, 'SANDBOX_FORCED'), rasp_score,
    has(flags, 'DENY_LISTED'), 100,
    has(flags, 'ALLOW_LISTED'), 0,
    rasp_score
  ) + 2 * toUInt8(rasp_action)), flags) as risk,
  [platform, sdk_version, app_version, device_model] as client
from telemetry;

alter table devices_of_telemetry modify query
select
  tenant_id,
  device_id,
  received_at as first_seen_at,
  received_at as last_seen_at,
  rasp_score as peak_rasp_score,
  arrayFilter(id -> id != '', [user_id, account_id]) as users,
  toUInt8(multiIf(
    has(flags, 'SANDBOX_FORCED'), rasp_score,
    has(flags, 'DENY_LISTED'), 100,
    has(flags, 'ALLOW_LISTED'), 0,
    rasp_score
  )) as peak_risk_score
from telemetry;

alter table user_devices_of_telemetry modify query
select
  tenant_id,
  named.1 as user_id,
  device_id,
  received_at as first_seen_at,
  received_at as last_seen_at,
  named.2 or has(placeholder_ids, 'device_id') as is_placeholder,
  rasp_score as peak_rasp_score,
  toUInt8(multiIf(
    has(flags, 'SANDBOX_FORCED'), rasp_score,
    has(flags, 'DENY_LISTED'), 100,
    has(flags, 'ALLOW_LISTED'), 0,
    rasp_score
  )) as peak_risk_score
from telemetry
array join arrayDistinct(arrayFilter(one -> one.1 != '', [
  (telemetry.user_id, has(placeholder_ids, 'user_id')),
  (account_id, has(placeholder_ids, 'account_id'))
])) as named;

create materialized view if not exists sessions_of_decisions to sessions as
select
  tenant_id,
  device_id,
  session_id,
  received_at as started_at,
  received_at as last_seen_at,
  -- Users, so that the erasure of one finds the row.
  arrayFilter(id -> id != '', [user_id, account_id]) as users,
  (toUInt16(8 * risk_score + 2 * toUInt8(action) + 1), flags) as risk
from decisions;

create materialized view if not exists devices_of_decisions to devices as
select
  tenant_id,
  device_id,
  received_at as first_seen_at,
  received_at as last_seen_at,
  arrayFilter(id -> id != '', [user_id, account_id]) as users,
  risk_score as peak_risk_score
from decisions;

create materialized view if not exists user_devices_of_decisions to user_devices as
select
  tenant_id,
  named as user_id,
  device_id,
  received_at as first_seen_at,
  received_at as last_seen_at,
  risk_score as peak_risk_score
from decisions
array join arrayDistinct(arrayFilter(id -> id != '', [decisions.user_id, account_id])) as named;

-- Events that were stored before. Every aggregate is idempotent, so running it again is safe. Of a
-- session only the highest rasp_score is known: one that a list allowed hides what was below it.
insert into sessions (tenant_id, device_id, session_id, started_at, last_seen_at, users, risk)
select
  tenant_id,
  device_id,
  session_id,
  started_at,
  last_seen_at,
  users,
  (
    toUInt16(8 * multiIf(
      has(verdict.flags, 'SANDBOX_FORCED'), verdict.score,
      has(verdict.flags, 'DENY_LISTED'), 100,
      has(verdict.flags, 'ALLOW_LISTED'), 0,
      verdict.score
    ) + 2 * toUInt8(verdict.action)),
    verdict.flags
  )
from sessions;

insert into devices (tenant_id, device_id, first_seen_at, last_seen_at, users, peak_risk_score)
select
  tenant_id,
  device_id,
  started_at,
  last_seen_at,
  users,
  toUInt8(multiIf(
    has(verdict.flags, 'SANDBOX_FORCED'), verdict.score,
    has(verdict.flags, 'DENY_LISTED'), 100,
    has(verdict.flags, 'ALLOW_LISTED'), 0,
    verdict.score
  ))
from sessions;

insert into user_devices
  (tenant_id, user_id, device_id, first_seen_at, last_seen_at, peak_risk_score)
select
  tenant_id,
  named,
  device_id,
  received_at,
  received_at,
  toUInt8(multiIf(
    has(flags, 'SANDBOX_FORCED'), rasp_score,
    has(flags, 'DENY_LISTED'), 100,
    has(flags, 'ALLOW_LISTED'), 0,
    rasp_score
  ))
from telemetry
array join arrayDistinct(arrayFilter(id -> id != '', [telemetry.user_id, account_id])) as named;
