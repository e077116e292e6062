-- Which accounts are used on more devices than one person owns?
--
-- Answer: one row per account with the number of its devices. Rented accounts, and accounts that a
-- farm of cloud phones runs, are on many devices at once. A person changes phones one by one.
-- Do: ask for a second factor on every device of the account except the first one.
-- Parameters: devices_min = 3
select
  user_id,
  count() as devices,
  min(first_seen_at) as known_since,
  max(first_seen_at) as newest_device_at,
  max(last_seen_at) as last_used_at,
  arraySort(groupArray(20)(device_id)) as some_devices
from analytics.user_devices
where tenant_id = {tenant:String}
  and last_seen_at >= {from:DateTime64(3, 'UTC')} and first_seen_at < {to:DateTime64(3, 'UTC')}
group by user_id
having devices >= {devices_min:UInt32}
order by devices desc, user_id
limit 200
