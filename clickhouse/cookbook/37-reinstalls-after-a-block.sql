-- Which phones came back with a new install after a block?
--
-- Answer: one row per phone: the install that was blocked first, and what came after it: the
-- installs, the people on them, and how many of them were blocked as well. Whoever is blocked
-- reinstalls the app, since that is a new device to everyone else.
-- Do: look at why these installs are the same phone, then deny the users of the newest ones.
-- Parameters: installs_min = 1
select
  phone_id,
  argMin(device_id, blocked_at) as blocked_device_id,
  min(blocked_at) as first_blocked_at,
  countIf(decided_at > first_blocked_at_of_phone) as installs_since,
  countIf(decided_at > first_blocked_at_of_phone and blocked_at < never) as blocked_since,
  length(arrayDistinct(arrayFlatten(
    groupArrayIf(users, decided_at > first_blocked_at_of_phone)
  ))) as users_since,
  maxIf(decided_at, decided_at > first_blocked_at_of_phone) as last_install_at
from (
  select
    phone_id, device_id, decided_at, users, toDateTime64('2100-01-01 00:00:00', 3, 'UTC') as never,
    if(raised.blocked_at = toDateTime64(0, 3, 'UTC'), never, raised.blocked_at) as blocked_at,
    min(blocked_at) over (partition by phone_id) as first_blocked_at_of_phone
  from analytics.phone_links
  left join (
    select device_id, min(created_at) as blocked_at
    from analytics.alerts
    where tenant_id = {tenant:String} and action = 'BLOCK'
      and created_at >= {from:DateTime64(3, 'UTC')} and created_at < {to:DateTime64(3, 'UTC')}
    group by device_id
  ) as raised using (device_id)
  left join (
    select device_id, users
    from analytics.devices
    where tenant_id = {tenant:String}
  ) as seen using (device_id)
  where tenant_id = {tenant:String} and decided_at < {to:DateTime64(3, 'UTC')}
)
group by phone_id
having installs_since >= {installs_min:UInt32}
order by installs_since desc, phone_id
limit 500
