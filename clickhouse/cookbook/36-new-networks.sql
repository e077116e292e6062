-- Which networks are new this week?
--
-- Answer: one row per network whose first event is of the last days before the end of the period,
-- most devices first, with the devices that are new themselves. New phones on a new network are
-- new customers, or a new farm; phones that are known have moved.
-- Do: look at a network that many new devices share, above all one of a data centre.
-- Parameters: days = 7
select
  network,
  any(asn) as asn,
  any(organization) as organization,
  any(country) as country,
  any(kinds) as kinds,
  min(first_at) as first_seen_at,
  count() as devices,
  countIf(device_first_at >= {to:DateTime64(3, 'UTC')} - toIntervalDay({days:UInt32}))
    as new_devices
from (
  select
    connection_network as network, device_id, min(received_at) as first_at,
    argMax(connection_asn, received_at) as asn,
    argMax(connection_organization, received_at) as organization,
    argMax(connection_country, received_at) as country,
    argMax(connection_kinds, received_at) as kinds
  from analytics.events
  where tenant_id = {tenant:String}
    and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
    and connection_network != ''
  group by network, device_id
) as pairs
join (
  select device_id, first_seen_at as device_first_at
  from analytics.devices
  where tenant_id = {tenant:String}
) as devices using (device_id)
group by network
having first_seen_at >= {to:DateTime64(3, 'UTC')} - toIntervalDay({days:UInt32})
order by devices desc, network
limit 500
