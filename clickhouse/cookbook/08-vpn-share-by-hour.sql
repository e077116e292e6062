-- At which hours of the day is a VPN most common?
--
-- Answer: one row per hour (UTC): devices seen in it, each once a day, and the share of them with
-- a VPN. People travel and work at all hours; a hump in the night of your market is somebody
-- else's day.
-- Do: weigh the VPN more in the hours of the hump, or look at who signs in then.
select
  toHour(received_at) as hour,
  uniqExact(device_id, toDate(received_at)) as devices,
  uniqExactIf(
    (device_id, toDate(received_at)), has(detected_signals, 'network.vpn_active')
  ) as devices_with_vpn,
  round(devices_with_vpn / devices, 3) as share
from analytics.events
where tenant_id = {tenant:String}
  and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
group by hour
order by hour
