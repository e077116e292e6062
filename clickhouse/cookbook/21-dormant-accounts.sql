-- Which accounts were unused for weeks and returned on a new device?
--
-- Answer: one row per account and new device: where it was last used before, and for how long it
-- was unused. Owners who return mostly use their old phone.
-- Do: ask for a second factor before the first payment, and inform the owner over the known
-- channel.
-- Parameters: days_min = 30
select
  user_id,
  device_id,
  argMax(before_device, before_at) as last_device,
  max(before_at) as last_used_at,
  woke_at,
  dateDiff('day', last_used_at, woke_at) as days_asleep
from (
  select
    fresh.user_id as user_id,
    fresh.device_id as device_id,
    fresh.first_seen_at as woke_at,
    older.device_id as before_device,
    older.last_seen_at as before_at
  from analytics.user_devices as fresh
  join (
    select user_id, device_id, first_seen_at, last_seen_at
    from analytics.user_devices
    where tenant_id = {tenant:String}
  ) as older on older.user_id = fresh.user_id
  where fresh.tenant_id = {tenant:String}
    and fresh.first_seen_at >= {from:DateTime64(3, 'UTC')}
    and fresh.first_seen_at < {to:DateTime64(3, 'UTC')}
    and older.device_id != fresh.device_id
    and older.first_seen_at < fresh.first_seen_at
)
group by user_id, device_id, woke_at
-- An old device that is in use again has a later last use, so its pause is not visible.
having last_used_at < woke_at - toIntervalDay({days_min:UInt16})
order by days_asleep desc, user_id
limit 500
