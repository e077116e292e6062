-- Which networks do the devices of a farm share?
--
-- Answer: one row per network on which many devices have exactly the same findings, most devices
-- first. A household or an office has a few devices that differ; a farm has many that do not. Of a
-- mobile operator or a company many customers share a network: there the findings tell.
-- Do: confirm the alert of one device, then review all devices of the network; add it to the deny
-- list where nobody else uses it.
-- Parameters: devices_min = 5, findings_min = 4
select
  network,
  asn,
  organization,
  platform,
  sdk_version,
  findings,
  uniqExact(device_id) as devices,
  uniqExactIf(person, person != '') as users,
  max(rasp_score) as peak_score,
  min(received_at) as first_seen_at,
  max(received_at) as last_seen_at
from (
  select
    connection_network as network, connection_asn as asn,
    connection_organization as organization, platform, sdk_version, device_id, received_at,
    rasp_score, if(user_id = '', account_id, user_id) as person,
    -- Leave out what changes with place and time.
    arrayFilter(
      one -> not startsWith(one, 'network.') and not startsWith(one, 'ecosystem.'),
      detected_signals
    ) as findings
  from analytics.events
  where tenant_id = {tenant:String}
    and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
    and connection_network != '' and length(detected_signals) >= {findings_min:UInt8}
)
where length(findings) >= {findings_min:UInt8}
group by network, asn, organization, platform, sdk_version, findings
having devices >= {devices_min:UInt32}
order by devices desc, network, sdk_version, findings
limit 200
