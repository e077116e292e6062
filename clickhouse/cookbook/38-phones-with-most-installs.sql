-- Which phones have the most installs?
--
-- Answer: one row per phone, most installs first, with the people seen on them. People reinstall an
-- app once or twice; a phone with many installs in few days is one that somebody resets on purpose,
-- or one of a tester.
-- Do: put testers on the allow list, and limit the others like one device.
-- Parameters: installs_min = 3
select
  phone_id,
  installs,
  first_install_at,
  last_install_at,
  round(dateDiff('second', first_install_at, last_install_at) / 86400, 1) as days,
  length(arrayDistinct(arrayFlatten(groupArray(users)))) as users_seen,
  max(risk_score) as risk_score
from (
  select phone_id, installs, first_install_at, last_install_at, arrayJoin(device_ids) as device_id
  from analytics.phones
  where tenant_id = {tenant:String} and installs >= {installs_min:UInt32}
    and last_install_at >= {from:DateTime64(3, 'UTC')}
    and first_install_at < {to:DateTime64(3, 'UTC')}
) as many
join (
  select device_id, users, risk_score
  from analytics.devices
  where tenant_id = {tenant:String}
) as seen using (device_id)
group by phone_id, installs, first_install_at, last_install_at
order by installs desc, phone_id
limit 200
