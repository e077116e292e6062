-- Which devices were clean and are rooted now, and since when?
--
-- Answer: one row per device whose first events show no sign of root and whose later events do.
-- What changed lies between its last clean event and its first rooted event.
-- Do: sign out the users of such a device and ask them to verify themselves on another device.
with
  [
    'root.su_binary', 'root.magisk_detected', 'root.kernelsu_detected', 'root.apatch_detected',
    'root.zygisk_detected', 'root.root_hiding', 'root.rooted', 'root.jailbroken'
  ] as signs
select
  device_id,
  any(platform) as platform,
  minIf(received_at, not rooted) as first_clean_at,
  maxIf(received_at, not rooted) as last_clean_at,
  minIf(received_at, rooted) as first_rooted_at,
  countIf(rooted) as rooted_events,
  arraySort(groupUniqArrayArrayIf(arrayIntersect(detected_signals, signs), rooted)) as found
from (
  select
    device_id, platform, received_at, detected_signals, hasAny(detected_signals, signs) as rooted
  from analytics.events
  where tenant_id = {tenant:String}
    and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
    -- Count both kinds by a hash first: that is enough for most devices.
    and sipHash64(device_id) in (
      select sipHash64(device_id)
      from analytics.events
      where tenant_id = {tenant:String}
        and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
      group by sipHash64(device_id)
      having countIf(hasAny(detected_signals, signs)) between 1 and count() - 1
    )
)
group by device_id
having first_clean_at < first_rooted_at
order by first_rooted_at desc, device_id
limit 500
