-- The highest score of a user's events on each device, so that a user's peak is found by its key.

alter table user_devices
  add column if not exists peak_rasp_score SimpleAggregateFunction(max, UInt8);

alter table user_devices_of_telemetry modify query
select
  tenant_id,
  named.1 as user_id,
  device_id,
  received_at as first_seen_at,
  received_at as last_seen_at,
  named.2 or has(placeholder_ids, 'device_id') as is_placeholder,
  rasp_score as peak_rasp_score
from telemetry
array join arrayDistinct(arrayFilter(one -> one.1 != '', [
  (telemetry.user_id, has(placeholder_ids, 'user_id')),
  (account_id, has(placeholder_ids, 'account_id'))
])) as named;

-- Events that were stored before. Every aggregate is idempotent, so running it again is safe.
insert into user_devices
  (tenant_id, user_id, device_id, first_seen_at, last_seen_at, is_placeholder, peak_rasp_score)
select
  tenant_id,
  named.1 as user_id,
  device_id,
  min(received_at),
  max(received_at),
  max(named.2 or has(placeholder_ids, 'device_id')),
  max(rasp_score)
from telemetry
array join arrayDistinct(arrayFilter(one -> one.1 != '', [
  (telemetry.user_id, has(placeholder_ids, 'user_id')),
  (account_id, has(placeholder_ids, 'account_id'))
])) as named
group by tenant_id, user_id, device_id;
