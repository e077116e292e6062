-- In which sessions do findings appear and disappear?
--
-- Answer: one row per session in which a finding changed at least this often. Root does not change
-- within minutes: something hides it, or the check is broken.
-- Do: treat the session by its worst event. When all rows have one phone model, report the check.
-- Parameters: changes_min = 3
select
  device_id,
  session_id,
  platform,
  sdk_version,
  length(steps) as events,
  steps[1].1 as first_at,
  arrayMax(arrayMap(one -> one.2, flapping)) as changes,
  arrayMap(one -> one.1, flapping) as findings
from (
  select
    device_id, session_id, platform, sdk_version, steps,
    arrayFilter(
      one -> one.2 >= {changes_min:UInt16},
      arrayMap(
        signal -> (
          signal,
          toUInt32(arraySum(arrayMap(
            (now, before) -> has(now.3, signal) != has(before.3, signal),
            arrayPopFront(steps), arrayPopBack(steps)
          )))
        ),
        arraySort(arrayDistinct(arrayFlatten(arrayMap(one -> one.3, steps))))
      )
    ) as flapping
  from (
    select
      device_id, session_id, any(platform) as platform, any(sdk_version) as sdk_version,
      arraySort(groupArray((received_at, event_id, detected_signals))) as steps
    from analytics.events
    where tenant_id = {tenant:String}
      and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
      -- Skip sessions whose events are all alike: they cannot flap, and most are like that.
      and sipHash64(device_id, session_id) in (
        select sipHash64(device_id, session_id)
        from analytics.events
        where tenant_id = {tenant:String}
          and received_at >= {from:DateTime64(3, 'UTC')}
          and received_at < {to:DateTime64(3, 'UTC')}
        group by sipHash64(device_id, session_id)
        having count() > {changes_min:UInt16}
          and min(sipHash64(detected_signals)) != max(sipHash64(detected_signals))
      )
    group by device_id, session_id
  )
)
where notEmpty(flapping)
order by changes desc, session_id
limit 500
