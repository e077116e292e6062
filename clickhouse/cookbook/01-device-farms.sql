-- Which devices form a farm: many of them with the same findings?
--
-- Answer: one row per SDK version and set of findings that many devices share exactly. Phones of
-- people differ from one another; copies of one image do not. Few users on many devices are rented
-- phones; many users are new fraud accounts.
-- Do: look at one device of a row, confirm its alert, then review the users of the whole row.
-- Parameters: devices_min = 8, findings_min = 4
select
  platform,
  sdk_version,
  findings,
  uniqExact(device_id) as devices,
  uniqExact(session_id) as sessions,
  uniqExactIf(person, person != '') as users,
  max(rasp_score) as peak_score,
  min(received_at) as first_seen_at,
  max(received_at) as last_seen_at
from (
  select
    platform, sdk_version, device_id, session_id, received_at, rasp_score,
    if(user_id = '', account_id, user_id) as person,
    -- Leave out what changes with place and time.
    arrayFilter(
      one -> not startsWith(one, 'network.') and not startsWith(one, 'ecosystem.'),
      detected_signals
    ) as findings
  from analytics.events
  where tenant_id = {tenant:String}
    and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
    and length(detected_signals) >= {findings_min:UInt8}
)
where length(findings) >= {findings_min:UInt8}
group by platform, sdk_version, findings
having devices >= {devices_min:UInt32}
order by devices desc, sdk_version, findings
limit 200
