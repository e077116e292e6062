-- How does the share of one signal move, day by day and version by version?
--
-- Answer: one row per day and SDK version on which the signal was detected; a day without a row
-- is a day without a detection. A step within one version is its release or its configuration, a
-- slope over all versions is the world.
-- Do: find the first day of the step; what was changed on that day is where to look.
-- Parameters: signal = debugger.xposed_detected, devices_min = 1
select
  day,
  platform,
  sdk_version,
  devices,
  fleet,
  round(share, 3) as share
from analytics.signal_share
where tenant_id = {tenant:String}
  and day >= toDate({from:DateTime64(3, 'UTC')}) and day < toDate({to:DateTime64(3, 'UTC')})
  and signal = {signal:String}
  and fleet >= {devices_min:UInt32}
order by day, platform, sdk_version
limit 5000
