-- Of the devices in use, how many have proved what they are, by SDK version and platform?
--
-- Answer: one row per SDK version and platform, most devices first: its devices, those with a valid
-- registration at their last event, those whose evidence was verified, those with a key in hardware,
-- and the share that is verified. A version without registrations does not send them; a low share of
-- a version that does is an outage of the attestation or an attack.
-- Do: switch the tenant's shared secret off when the versions in use have registered; look at the
-- reasons of the rejected ones.
select
  sdk_version,
  platform,
  count() as devices,
  countIf(expires_at > last_seen_at) as registered,
  countIf(expires_at > last_seen_at and verdict = 'verified') as verified,
  countIf(expires_at > last_seen_at and level in ('hardware', 'strongbox')) as in_hardware,
  round(verified / devices, 3) as share_verified
from (
  select
    device_id,
    argMax(sdk_version, received_at) as sdk_version,
    argMax(platform, received_at) as platform,
    max(received_at) as last_seen_at
  from analytics.events
  where tenant_id = {tenant:String}
    and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
  group by device_id
) as seen
left join (
  select
    device_id,
    argMax(verdict, received_at) as verdict,
    argMax(level, received_at) as level,
    argMax(expires_at, received_at) as expires_at
  from analytics.installs
  where tenant_id = {tenant:String} and received_at < {to:DateTime64(3, 'UTC')}
  group by device_id
) as registered_as using (device_id)
group by sdk_version, platform
order by devices desc, sdk_version, platform
limit 1000
