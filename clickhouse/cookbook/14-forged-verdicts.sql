-- Which devices claim to be clean while their own signals say otherwise?
--
-- Answer: one row per device whose SDK reported a score far below the server's. When all devices
-- of a version do, the version is too old to know the signals. Single devices are patched.
-- Do: treat the claim of a single device as tampering; for a whole version, ask for an update.
-- Parameters: gap_min = 30, events_min = 2
select
  device_id,
  any(platform) as platform,
  argMax(sdk_version, received_at) as sdk_version,
  count() as events,
  countIf(rasp_score - client_score >= {gap_min:Float64}) as events_apart,
  countIf(client_action = 'ALLOW' and rasp_action = 'BLOCK') as allowed_what_we_block,
  max(rasp_score - client_score) as largest_gap
from analytics.events
where tenant_id = {tenant:String}
  and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
  and rasp_score >= {gap_min:Float64}
  -- A negative score, or an empty action, is a client that computes none.
  and client_score >= 0 and client_score <= 100 and trim(client_action) != ''
group by device_id
having events_apart >= {events_min:UInt32}
order by events_apart desc, largest_gap desc, device_id
limit 500
