-- How does the prevalence of one signal change by day and SDK version?
--
-- Answer: one row per day and SDK version with a detection of the signal. A step within one
-- version comes from its release or its configuration. A slope over all versions is a real change.
-- Do: find the first day of the step and look at what changed on that day.
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
