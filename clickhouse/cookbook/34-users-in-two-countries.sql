-- Which users were in two countries within hours?
--
-- Answer: one row per user, most changes first: how often two events that follow each other came
-- from different countries in less than the limit, the shortest time between two such events, and
-- the countries. Addresses of VPNs, proxies, relays, Tor and data centres are left out, since they
-- say nothing of where a person is. Borders, roaming and databases that are wrong make single
-- changes; an account that is used in two places makes many.
-- Do: look at the devices of the user. Two of them, each in its country, are a shared or a stolen
-- account.
-- Parameters: hours = 6
select
  person,
  count() as changes,
  min(dateDiff('minute', previous_at, received_at)) as shortest_minutes,
  arraySort(groupUniqArrayArray([previous_country, country])) as countries,
  uniqExact(device_id) as devices,
  max(received_at) as last_at
from (
  select
    person, device_id, country, received_at,
    lagInFrame(country) over visits as previous_country,
    lagInFrame(received_at) over visits as previous_at
  from (
    select
      if(user_id = '', account_id, user_id) as person, device_id, event_id, received_at,
      connection_country as country
    from analytics.events
    where tenant_id = {tenant:String}
      and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
      and connection_country != '' and (user_id != '' or account_id != '')
      and not hasAny(connection_kinds, ['vpn', 'proxy', 'relay', 'tor', 'hosting'])
  )
  window visits as (
    partition by person order by received_at, event_id
    rows between 1 preceding and current row
  )
)
where previous_country != '' and country != previous_country
  and received_at < previous_at + toIntervalHour({hours:UInt32})
group by person
order by changes desc, person
limit 500
