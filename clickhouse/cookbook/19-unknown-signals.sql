-- Which signals do SDKs send that the catalog does not know, and since when?
--
-- Answer: one row per unknown signal, platform and version. A signal on all devices of a new
-- version belongs in the catalog. A signal on a single device is a test of what the service
-- accepts.
-- Do: ask for known signals to be added to the catalog (shared/core/signals/catalog/). Until then
-- an unknown signal is kept, counted and weighs nothing.
select
  signal,
  platform,
  sdk_version,
  uniqExact(device_id) as devices,
  count() as events,
  min(received_at) as first_seen_at,
  max(received_at) as last_seen_at
from analytics.events
array join unknown_signals as signal
where tenant_id = {tenant:String}
  and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
group by signal, platform, sdk_version
order by devices desc, signal, sdk_version
limit 500
