-- At which hours of the day is a VPN most common?
--
-- Answer: one row per hour (UTC): the devices seen in it, each once a day, and the proportion of
-- them with a VPN. A peak during the night of your market comes from users in another time zone.
-- Do: give the VPN more weight in the hours of the peak, or review the users who sign in then.
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
