/**
 * SQL: puts the aggregates of some devices back after rows of theirs were erased, from what
 * remains. Each statement takes the tenant and its devices as parameters, and a user's also the id.
 */
import { toEdgeRiskSql } from '#shared/core/velocity/edge-risk.ts'

const usersOfEvent = "arrayFilter(id -> id != '', [user_id, account_id])"
// As the views of `telemetry` have it: an event without one leaves the one before.
const connectionOfEvent = `(
      if(connection_network = '', toDateTime64(0, 3, 'UTC'), received_at),
      connection_network, toString(connection_country), connection_asn,
      toString(connection_organization), cast(connection_kinds as Array(String))
    )`
const ofTheseDevices = 'where tenant_id = {tenant:String} and device_id in {devices:Array(String)}'

// Sessions from the raw events and their decisions, devices from the sessions: those that were not
// touched are still there even if their raw events are not. Putting back what is there already
// changes nothing.
export const rebuildSessions = [
  `insert into sessions
    (tenant_id, device_id, session_id, started_at, last_seen_at, verdict, users, risk, client,
     connection)
  select tenant_id, device_id, session_id, min(received_at), max(received_at),
    max((rasp_score, rasp_action, flags)), groupUniqArrayArray(${usersOfEvent}),
    max((toUInt16(8 * ${toEdgeRiskSql()} + 2 * toUInt8(rasp_action)), flags)),
    max([platform, sdk_version, app_version, device_model]), max(${connectionOfEvent})
  from telemetry ${ofTheseDevices}
  group by tenant_id, device_id, session_id`,
  `insert into sessions
    (tenant_id, device_id, session_id, started_at, last_seen_at, users, risk)
  select tenant_id, device_id, session_id, min(received_at), max(received_at),
    groupUniqArrayArray(${usersOfEvent}),
    max((toUInt16(8 * risk_score + 2 * toUInt8(action) + 1), flags))
  from decisions ${ofTheseDevices}
  group by tenant_id, device_id, session_id`,
]
export const rebuildDevices = `
  insert into devices
    (tenant_id, device_id, first_seen_at, last_seen_at, peak_rasp_score, users, peak_risk_score,
     connection)
  select tenant_id, device_id, min(started_at), max(last_seen_at), max(verdict.score),
    groupUniqArrayArray(users), intDiv(max(risk.rank), 8), max(connection)
  from sessions ${ofTheseDevices}
  group by tenant_id, device_id`
export const rebuildUserDevices = (filter: string) => [
  `insert into user_devices
    (tenant_id, user_id, device_id, first_seen_at, last_seen_at, is_placeholder, peak_rasp_score,
     peak_risk_score)
  select tenant_id, user, device_id, min(received_at), max(received_at),
    max(hasAny(placeholder_ids, ['device_id', if(user = user_id, 'user_id', 'account_id')])),
    max(rasp_score), max(${toEdgeRiskSql()})
  from telemetry
  array join arrayDistinct(${usersOfEvent}) as user
  ${ofTheseDevices} ${filter}
  group by tenant_id, user, device_id`,
  `insert into user_devices
    (tenant_id, user_id, device_id, first_seen_at, last_seen_at, peak_risk_score)
  select tenant_id, user, device_id, min(received_at), max(received_at), max(risk_score)
  from decisions
  array join arrayDistinct(${usersOfEvent}) as user
  ${ofTheseDevices} ${filter}
  group by tenant_id, user, device_id`,
]

// As `install_keys_of_installs` does, from the registrations that came later.
export const rebuildInstallKeys = `
  insert into install_keys
    (tenant_id, key_hash, kind, subject_hash, issuer_hash, stream_offset, last_seen_at, device_id)
  select tenant_id, reinterpretAsUInt64(SHA256(concat(seen.1, ' ', seen.2))), seen.1,
    reinterpretAsUInt64(SHA256(concat('device ', device_id))), seen.3, stream_offset, received_at,
    device_id
  from (
    select tenant_id, device_id, stream_offset, received_at, attested_key,
      if(provider = 'key_attestation', issuers[1], '') as issuer,
      if(remotely_provisioned, 'remote_issuer', 'issuer') as issuer_kind,
      if(issuer = '', 0, reinterpretAsUInt64(SHA256(concat(issuer_kind, ' ', issuer))))
        as issuer_hash
    from installs ${ofTheseDevices} and verdict = 'verified' and attested_key != ''
  )
  array join arrayConcat(
    [('key', attested_key, issuer_hash)],
    if(issuer != '' and issuer_kind = 'remote_issuer',
      [('remote_issuer', issuer, toUInt64(0))], [])
  ) as seen`
