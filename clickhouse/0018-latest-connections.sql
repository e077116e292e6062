-- Where a session and a device came from last, and where the event that raised an alert came from.
-- Events without a measured connection leave the one before.

alter table sessions
  -- The latest one: its instant comes first, and the order of the tuple is total.
  add column if not exists connection SimpleAggregateFunction(max, Tuple(
    at DateTime64(3, 'UTC'),
    network String,
    country String,
    asn UInt32,
    organization String,
    kinds Array(String)
  ));

alter table devices
  add column if not exists connection SimpleAggregateFunction(max, Tuple(
    at DateTime64(3, 'UTC'),
    network String,
    country String,
    asn UInt32,
    organization String,
    kinds Array(String)
  ));

-- The columns are those of `telemetry`.
alter table alerts_replica
  add column if not exists connection_network String,
  add column if not exists connection_country LowCardinality(String),
  add column if not exists connection_asn UInt32,
  add column if not exists connection_organization LowCardinality(String),
  add column if not exists connection_kinds Array(LowCardinality(String));

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
  [platform, sdk_version, app_version, device_model] as client,
  (
    if(connection_network = '', toDateTime64(0, 3, 'UTC'), received_at),
    connection_network, toString(connection_country), connection_asn,
    toString(connection_organization), cast(connection_kinds as Array(String))
  ) as connection
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
  )) as peak_risk_score,
  (
    if(connection_network = '', toDateTime64(0, 3, 'UTC'), received_at),
    connection_network, toString(connection_country), connection_asn,
    toString(connection_organization), cast(connection_kinds as Array(String))
  ) as connection
from telemetry;
