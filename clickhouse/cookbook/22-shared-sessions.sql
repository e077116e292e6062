-- Which sessions continued on another device?
--
-- Answer: one row per session id that more than one device sent. A session belongs to one install.
-- On a second device it is a stolen token or a copied app.
-- Do: end the session everywhere and ask its user to sign in again.
select
  session_id,
  count() as devices,
  arrayMap(one -> one.2, arraySort(groupArray((started_at, device_id)))) as in_order_of_arrival,
  min(started_at) as first_at,
  max(started_at) as last_joined_at,
  arraySort(groupUniqArrayArray(users)) as users_seen
from analytics.sessions
where tenant_id = {tenant:String}
  and last_seen_at >= {from:DateTime64(3, 'UTC')} and started_at < {to:DateTime64(3, 'UTC')}
  -- Only count by a hash first: that is enough for most sessions.
  and sipHash64(session_id) in (
    select sipHash64(session_id)
    from analytics.sessions
    where tenant_id = {tenant:String}
      and last_seen_at >= {from:DateTime64(3, 'UTC')} and started_at < {to:DateTime64(3, 'UTC')}
    group by sipHash64(session_id)
    having count() > 1
  )
group by session_id
having devices > 1
order by last_joined_at desc, session_id
limit 500
