create or replace view {analytics:Identifier}.phone_links (
  tenant_id LowCardinality(String) comment 'The tenant.',
  device_id String comment 'The install: one installation of the app.',
  phone_id String comment 'The phone that it is on, as it was decided or an analyst corrected it.',
  link LowCardinality(String)
    comment 'first: a phone of its own; linked: on a known phone; possible: a phone of its own that may be possible_phone_id; corrected: an analyst says so.',
  confidence Float64
    comment 'Of being on phone_id: of links with 0.99 one in a hundred is wrong; 1 of a first install and of what an analyst says.',
  decided_at DateTime64(3, 'UTC')
    comment 'When its first event was received that had anything to tell phones apart.',
  decided_phone_id String comment 'What the service decided, which never changes.',
  possible_phone_id String
    comment 'The phone that it may be on, too uncertain to count; empty without one.',
  possible_confidence Float64 comment 'Of possible_phone_id; 0 without one.',
  evidence Array(Tuple(field String, level UInt8, weight Float64, holders Nullable(UInt64)))
    comment 'What agreed (level above 0) and what differed, with natural logarithms as weights, and how many phones had the value.',
  identifiers_shared Bool
    comment 'Whether its identifiers are those of several phones, so they were left out.',
  corrected_at Nullable(DateTime64(3, 'UTC'))
    comment 'When an analyst joined it or split it off; null when none did.',
  parameters_version UInt32 comment 'The version of the parameters that decided.'
) as
select
  tenant_id, device_id, if(corrected.phone_id = '', links.phone_id, corrected.phone_id) as phone_id,
  if(corrected.phone_id = '', toString(links.kind), 'corrected') as link,
  round(multiIf(
    corrected.phone_id != '', 1, links.kind = 'possible', 1 - links.confidence, links.confidence
  ), 6) as confidence,
  links.received_at as decided_at, links.phone_id as decided_phone_id,
  if(links.kind = 'possible', links.possible_phone_id, '') as possible_phone_id,
  if(links.kind = 'possible', round(links.confidence, 6), 0) as possible_confidence,
  JSONExtract(links.evidence,
    'Array(Tuple(field String, level UInt8, weight Float64, holders Nullable(UInt64)))')
    as evidence,
  links.identifiers_shared as identifiers_shared,
  if(corrected.phone_id = '', null, corrected.at) as corrected_at,
  links.parameters_version as parameters_version
from (
  select
    tenant_id, device_id, phone_id, kind, possible_phone_id, confidence, evidence,
    identifiers_shared, received_at, parameters_version
  from phone_links final
) as links
left join (
  select tenant_id, device_id, phone_id, at
  from phone_corrections_replica final
  where phone_id != ''
) as corrected using (tenant_id, device_id)
comment 'Every install with the phone that it is on, and why. Corrections are copied from the service''s own database: freshness says up to when. Cheap by tenant with device; by phone it reads the tenant''s installs.';
