-- Which reasons raise alerts, and which are rising?
--
-- Answer: one row per reason, most frequent first, with the earlier and the later half of the
-- period side by side. A reason that doubles within a week is an attack, a release or a change of
-- policy.
-- Do: open the newest alerts of the rising reasons and compare them with the policy's history (`di
-- audit`).
select
  code as reason,
  count() as alerts,
  countIf(created_at < middle) as earlier,
  countIf(created_at >= middle) as later,
  round(later / greatest(1, earlier), 2) as growth,
  round(avg(weight), 1) as average_weight,
  uniqExact(device_id) as devices
from (
  select
    code, created_at, weight, device_id,
    fromUnixTimestamp64Milli(intDiv(
      toUnixTimestamp64Milli({from:DateTime64(3, 'UTC')})
        + toUnixTimestamp64Milli({to:DateTime64(3, 'UTC')}),
      2
    ), 'UTC') as middle
  from analytics.reasons
  where tenant_id = {tenant:String}
    and created_at >= {from:DateTime64(3, 'UTC')} and created_at < {to:DateTime64(3, 'UTC')}
)
group by code
order by alerts desc, reason
