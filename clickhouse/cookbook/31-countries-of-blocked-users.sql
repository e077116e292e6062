-- Which countries do blocked users come from?
--
-- Answer: one row per country, most blocked users first: the users with a BLOCK from there, all
-- users seen there, and the share of the blocked. The country is that of the address, which a VPN
-- can choose. A small country with a high share is often one operator or one farm.
-- Do: look at the networks of the country (question 32) before you treat all of it differently.
select
  country,
  blocked_users,
  users,
  round(blocked_users / users, 3) as share,
  blocks
from (
  select
    connection_country as country,
    uniqExact(user_id) as blocked_users,
    count() as blocks
  from analytics.alerts
  where tenant_id = {tenant:String}
    and created_at >= {from:DateTime64(3, 'UTC')} and created_at < {to:DateTime64(3, 'UTC')}
    and action = 'BLOCK' and user_id != '' and connection_country != ''
  group by country
) as blocked
join (
  select connection_country as country, uniqExact(if(user_id = '', account_id, user_id)) as users
  from analytics.events
  where tenant_id = {tenant:String}
    and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
    and connection_country != '' and (user_id != '' or account_id != '')
  group by country
) as seen using (country)
order by blocked_users desc, country
limit 300
