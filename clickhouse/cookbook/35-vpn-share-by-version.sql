-- How many devices come over a VPN, by SDK version, and does the SDK see it?
--
-- Answer: one row per platform and SDK version: the devices with a measured connection, those with
-- an event from a network of a VPN or a relay, those whose SDK reported a VPN, and those of which
-- both say so. A version that sees far less than the network shows has lost the check, or runs
-- where it is hidden from the app.
-- Do: tell whoever makes the SDK; until then give connection.vpn the weight of network.vpn_active.
select
  platform,
  sdk_version,
  uniqExact(device_id) as devices,
  uniqExactIf(device_id, hasAny(connection_kinds, ['vpn', 'relay'])) as over_vpn,
  uniqExactIf(device_id, has(detected_signals, 'network.vpn_active')) as reported,
  uniqExactIf(
    device_id,
    hasAny(connection_kinds, ['vpn', 'relay']) and has(detected_signals, 'network.vpn_active')
  ) as both,
  round(over_vpn / devices, 3) as share
from analytics.events
where tenant_id = {tenant:String}
  and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
  and connection_network != ''
group by platform, sdk_version
order by devices desc, platform, sdk_version
limit 1000
