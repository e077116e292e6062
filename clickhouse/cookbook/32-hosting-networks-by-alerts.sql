-- Which hosting networks raise the most alerts?
--
-- Answer: one row per network of a data centre, most alerts first, with its operator. People are
-- seldom there; emulators and scripts are, and some VPNs. A row with confirmed alerts and no false
-- positives is a candidate for the deny list.
-- Do: deny the network, or the operator where all its networks are alike.
select
  connection_network as network,
  any(connection_asn) as asn,
  any(connection_organization) as organization,
  any(connection_country) as country,
  count() as alerts,
  countIf(action = 'BLOCK') as blocks,
  uniqExact(device_id) as devices,
  uniqExactIf(user_id, user_id != '') as users,
  countIf(disposition = 'CONFIRMED') as confirmed,
  countIf(disposition = 'FALSE_POSITIVE') as false_positives
from analytics.alerts
where tenant_id = {tenant:String}
  and created_at >= {from:DateTime64(3, 'UTC')} and created_at < {to:DateTime64(3, 'UTC')}
  and has(connection_kinds, 'hosting')
group by network
order by alerts desc, network
limit 200
