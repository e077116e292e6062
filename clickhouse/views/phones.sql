create or replace view {analytics:Identifier}.phones (
  tenant_id LowCardinality(String) comment 'The tenant.',
  phone_id String comment 'The phone: the installs on the same hardware.',
  installs UInt64 comment 'How many installs of the app were on it.',
  first_install_at DateTime64(3, 'UTC') comment 'When the first of them was decided.',
  last_install_at DateTime64(3, 'UTC') comment 'When the last of them was decided.',
  device_ids Array(String) comment 'The installs, first one first.',
  corrected UInt64 comment 'How many of them an analyst joined or split off.'
) as
select
  tenant_id, present as phone_id, count() as installs, min(received_at) as first_install_at,
  max(received_at) as last_install_at,
  arrayMap(one -> one.2, arraySort(groupArray((received_at, device_id)))) as device_ids,
  countIf(corrected_phone_id != '') as corrected
from (
  select
    tenant_id, device_id, links.received_at as received_at,
    corrected.phone_id as corrected_phone_id,
    if(corrected.phone_id = '', links.phone_id, corrected.phone_id) as present
  from (select tenant_id, device_id, phone_id, received_at from phone_links final) as links
  left join (
    select tenant_id, device_id, phone_id
    from phone_corrections_replica final
    where phone_id != ''
  ) as corrected using (tenant_id, device_id)
)
group by tenant_id, present
comment 'Every phone with its installs, as it was decided or analysts corrected it. It reads all installs of the tenant.';
