create or replace view {analytics:Identifier}.signal_share (
  tenant_id LowCardinality(String) comment 'The tenant.',
  day Date comment 'The UTC day.',
  platform LowCardinality(String) comment 'android, ios or another, in lower case.',
  sdk_version LowCardinality(String) comment 'The SDK''s version.',
  signal LowCardinality(String) comment 'category.signal',
  devices UInt64 comment 'Devices of that day, platform and version that had it detected.',
  fleet UInt64 comment 'All devices of that day, platform and version.',
  share Float64 comment 'devices / fleet, 0 to 1.'
) as
select
  tenant_id, day, platform, sdk_version, one.1 as signal, one.2 as devices, fleet,
  devices / fleet as share
from (
  select
    tenant_id, toDate(received_at) as day,
    {{platform}} as platform,
    sdk_version,
    uniqExact(sipHash64(device_id)) as fleet,
    uniqExactMap(mapFromArrays(
      cast(arrayConcat(detected_signals, detected_server_signals) as Array(String)),
      arrayMap(
        signal -> sipHash64(device_id), arrayConcat(detected_signals, detected_server_signals)
      )
    )) as by_signal
  from telemetry final
  group by tenant_id, day, platform, sdk_version
)
array join by_signal as one
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment 'On which share of the fleet a signal was detected, by day, platform and SDK version. A signal that was detected nowhere has no row. Cheap by tenant with day.';
