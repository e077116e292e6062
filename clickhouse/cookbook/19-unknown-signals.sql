-- What do SDKs send that our catalog does not know, and since when?
--
-- Answer: one row per unknown signal, platform and version. A new version on all of its devices
-- is a signal to add to the catalog; a single device is somebody who tries what we take.
-- Do: ask for what you know the meaning of to be added to the catalog
-- (shared/core/signal-catalog/); until then it is kept, counted and weighs nothing.
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
