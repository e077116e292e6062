create or replace view {analytics:Identifier}.decisions (
  tenant_id LowCardinality(String) comment 'The tenant.',
  received_at DateTime64(3, 'UTC') comment 'When the edge accepted the event.',
  device_id String comment 'The device.',
  session_id String comment 'The session, unique within its device.',
  user_id String comment 'The user that the client named; empty when none.',
  account_id String comment 'The account that the client named; empty when none.',
  event_id String comment 'The event.',
  rasp_score UInt8 comment 'The score of the signals alone, 0 to 100, as the edge answered it.',
  risk_score UInt8 comment 'The score by which it was decided, 0 to 100.',
  action LowCardinality(String) comment 'ALLOW, REVIEW or BLOCK: what was decided.',
  flags Array(LowCardinality(String)) comment 'The codes of the reasons, heaviest first.',
  reasons String
    comment 'JSON text: a list of code, weight and evidence, where counts of velocity are.'
) as
select
  tenant_id, received_at, device_id, session_id, user_id, account_id, event_id, rasp_score,
  risk_score, action, flags, reasons
from decisions final
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment 'The decision of every event for which it is not what the edge made of it: velocity, lists and the rest of what is known raised the score, or gave reasons. Of other events events has it all. Cheap by tenant with device, with time (months are skipped whole).';
