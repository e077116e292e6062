-- Who collects the bonus for new customers several times with one phone?
--
-- Answer: one row per phone on which several accounts were seen first, over several installs: each
-- account is new, and so is each install, so neither counts alone would show it. Accounts that were
-- known from another phone before are left out.
-- Do: give a bonus once for each phone, and review these accounts together.
-- Parameters: accounts_min = 3, installs_min = 2
select
  phone_id,
  uniqExact(user_id) as new_accounts,
  uniqExact(device_id) as installs,
  min(seen_at) as first_account_at,
  max(seen_at) as last_account_at,
  arraySort(groupUniqArray(10)(user_id)) as accounts
from (
  select user_id, argMin(device_id, first_seen_at) as device_id, min(first_seen_at) as seen_at
  from analytics.user_devices
  where tenant_id = {tenant:String}
  group by user_id
  having seen_at >= {from:DateTime64(3, 'UTC')} and seen_at < {to:DateTime64(3, 'UTC')}
) as accounts
join (
  select device_id, phone_id
  from analytics.phone_links
  where tenant_id = {tenant:String}
) as links using (device_id)
group by phone_id
having new_accounts >= {accounts_min:UInt32} and installs >= {installs_min:UInt32}
order by new_accounts desc, phone_id
limit 200
