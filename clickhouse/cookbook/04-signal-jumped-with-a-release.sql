-- Which signal is far more common on one SDK version than on the rest of its platform?
--
-- Answer: one row per signal and version, largest difference first. When a new release finds
-- something on a third of the fleet, the release is wrong. When an old version does, farms use it.
-- Do: for a new release, suppress the signal for that version in the policy, inform the SDK's team
-- and reopen the alerts that it raised. For an old version, look for farms among its devices.
-- Parameters: devices_min = 20, change_min = 0.1
with
  fleets as (
    select platform, sdk_version, uniqExact(device_id) as fleet
    from analytics.events
    where tenant_id = {tenant:String}
      and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
    group by platform, sdk_version
  ),
  found as (
    select platform, sdk_version, signal, uniqExact(device_id) as devices
    from analytics.signals
    where tenant_id = {tenant:String}
      and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
    group by platform, sdk_version, signal
  )
select
  platform,
  sdk_version,
  signal,
  devices,
  fleet,
  round(devices / fleet, 3) as share,
  round(devices_elsewhere / fleet_elsewhere, 3) as share_elsewhere
from (
  select
    platform, sdk_version, signal, devices,
    sum(devices) over (partition by platform, signal) - devices as devices_elsewhere
  from found
) as counted
join (
  select
    platform, sdk_version, fleet,
    sum(fleet) over (partition by platform) - fleet as fleet_elsewhere
  from fleets
) as sized using (platform, sdk_version)
where fleet >= {devices_min:UInt32} and fleet_elsewhere >= {devices_min:UInt32}
  and devices / fleet - devices_elsewhere / fleet_elsewhere >= {change_min:Float64}
order by devices / fleet - devices_elsewhere / fleet_elsewhere desc, signal, sdk_version
limit 200
