create or replace view {analytics:Identifier}.user_devices_as_of as
select
  pairs.tenant_id as tenant_id,
  pairs.user_id as user_id,
  pairs.device_id as device_id,
  pairs.first_seen_at as first_seen_at,
  if(
    pairs.last_seen_at <= {as_of:DateTime64(3, 'UTC')},
    pairs.last_seen_at,
    greatest(pairs.first_seen_at, coalesce(seen.last_seen_at, pairs.first_seen_at))
  ) as last_seen_at
from (
  select tenant_id, user_id, device_id, first_seen_at, last_seen_at
  from user_devices final
  where first_seen_at <= {as_of:DateTime64(3, 'UTC')} and not is_placeholder
) as pairs
left join (
  select tenant_id, user_id, device_id, max(received_at) as last_seen_at
  from (
    select tenant_id, user_id, device_id, received_at
    from telemetry final
    where user_id != '' and received_at <= {as_of:DateTime64(3, 'UTC')}
    union all
    select tenant_id, account_id as user_id, device_id, received_at
    from telemetry final
    where account_id != '' and received_at <= {as_of:DateTime64(3, 'UTC')}
  )
  group by tenant_id, user_id, device_id
) as seen on seen.tenant_id = pairs.tenant_id and seen.user_id = pairs.user_id
  and seen.device_id = pairs.device_id
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment 'user_devices as it was at a past instant: user_devices_as_of(as_of = ''2026-01-31 23:59:59.999''), in UTC, with the columns of user_devices. A last_seen_at needs the events of that time: where retention has removed them it is the latest that is still known to be right.';
