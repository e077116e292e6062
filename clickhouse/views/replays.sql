create or replace view {analytics:Identifier}.replays (
  tenant_id LowCardinality(String) comment 'The tenant.',
  received_at DateTime64(3, 'UTC') comment 'When the copy came, the first one of its hour.',
  device_id String comment 'The device that the event names.',
  session_id String comment 'The session that it names.',
  user_id String comment 'The user that it names; empty when none.',
  account_id String comment 'The account that it names; empty when none.',
  event_id String comment 'The event: all its copies have the same.',
  first_received_at DateTime64(3, 'UTC') comment 'When the event came first.',
  network_changed Bool comment 'Whether the copy came from another network than the first one; false where one of the two is not known.'
) as
select
  tenant_id, received_at, device_id, session_id, user_id, account_id, event_id, first_received_at,
  network_changed
from replays final
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment 'Events whose bytes came again more than ten minutes after their first copy, or from another network: one row for each event and hour, however often it came. The copy was answered like the event and counted nowhere; the next event of the device may have the reason REPLAYED. Cheap by tenant with device, with time (months are skipped whole).';
