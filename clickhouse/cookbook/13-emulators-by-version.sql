-- Which SDK versions and platforms have emulators?
--
-- Answer: one row per version: its devices and the proportion of emulators, simulators and cloud
-- phones. Farms keep the version that they were set up with, so old versions collect them.
-- Do: end support of versions with a high proportion and few real users.
-- Parameters: devices_min = 5
select
  platform,
  sdk_version,
  uniqExact(device_id) as devices,
  uniqExactIf(device_id, hasAny(
    detected_signals,
    ['emulator.is_emulator', 'emulator.is_simulator', 'emulator.cloud_phone']
  )) as emulators,
  round(emulators / devices, 3) as share
from analytics.events
where tenant_id = {tenant:String}
  and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
group by platform, sdk_version
having devices >= {devices_min:UInt32}
order by share desc, devices desc, platform, sdk_version
