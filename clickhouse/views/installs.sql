create or replace view {analytics:Identifier}.installs (
  tenant_id LowCardinality(String) comment 'The tenant.',
  received_at DateTime64(3, 'UTC') comment 'When the edge registered it.',
  device_id String comment 'The device: one installation of the app.',
  token_id String comment 'The hash of its install token: one registration.',
  platform LowCardinality(String) comment 'android or ios, as the app said; empty when it said none.',
  app_id LowCardinality(String) comment 'Package or bundle id, as the app said.',
  provider LowCardinality(String)
    comment 'The evidence: key_attestation, app_attest, play_integrity or none.',
  verdict LowCardinality(String) comment 'verified, rejected, or none without evidence.',
  reason LowCardinality(String) comment 'Why it was rejected: the first failed step; else empty.',
  level LowCardinality(String)
    comment 'Where the key lies: strongbox, hardware, software, or none without a key.',
  attested_key String comment 'The hash of the attested key; empty without one.',
  issuers Array(String)
    comment 'Hashes of the certificates above the key, from its issuer up, without the root.',
  remotely_provisioned Bool
    comment 'Whether its certificate was provisioned for this phone alone, not for a batch of them.',
  device_model LowCardinality(String)
    comment 'The phone’s model as the attestation or else the client said; empty when neither did.',
  root_epoch UInt32 comment 'The epoch of the tenant’s install root that made the token.',
  expires_at DateTime64(3, 'UTC') comment 'When the token ends.'
) as
select
  tenant_id, received_at, device_id, token_id, platform, app_id, provider, verdict, reason, level,
  attested_key, issuers, remotely_provisioned, device_model, root_epoch, expires_at
from installs final
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment 'Every registration of an install, with what was verified of it. A device has one about every 30 days; its latest is that of the highest received_at. Cheap by tenant with device, with time (months are skipped whole).';
