-- Which alerts never reached us, or reached us too late to act?
--
-- Answer: one row per delivery that failed, is still pending or took longer than the limit, with
-- its last error.
-- Do: replay the failed ones with `di deliveries replay`, and look at your receiver in the hours
-- with many rows.
-- Parameters: late_seconds = 60
select
  alert_id,
  device_id,
  created_at,
  state,
  reason,
  attempts,
  dateDiff('second', created_at, ifNull(ended_at, {to:DateTime64(3, 'UTC')})) as seconds,
  if(attempts > 0, attempt_status[-1], null) as last_status,
  arrayFirst(kind -> kind != '', arrayReverse(attempt_error_kind)) as last_error
from analytics.deliveries
where tenant_id = {tenant:String}
  and created_at >= {from:DateTime64(3, 'UTC')} and created_at < {to:DateTime64(3, 'UTC')}
  and event = 'risk.alert'
  and (state != 'delivered' or seconds >= {late_seconds:UInt32})
order by seconds desc, alert_id
limit 1000
