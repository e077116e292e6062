-- The device that a key, or a certificate of one phone, was registered on, so that the scorer counts
-- phones and not installs. Empty of a batch's certificate, and in rows of an earlier release.
alter table install_keys
  add column if not exists device_id SimpleAggregateFunction(max, String);

-- As before, with the device.
alter table install_keys_of_installs modify query
select
  tenant_id,
  reinterpretAsUInt64(SHA256(concat(seen.1, ' ', seen.2))) as key_hash,
  seen.1 as kind,
  seen.3 as subject_hash,
  seen.4 as issuer_hash,
  stream_offset,
  received_at as last_seen_at,
  if(kind = 'issuer', '', device) as device_id
from (
  select
    tenant_id,
    stream_offset,
    received_at,
    attested_key,
    device_model,
    device_id as device,
    reinterpretAsUInt64(SHA256(concat('device ', device_id))) as device_hash,
    if(provider = 'key_attestation', issuers[1], '') as issuer,
    if(remotely_provisioned, 'remote_issuer', 'issuer') as issuer_kind,
    if(issuer = '', 0, reinterpretAsUInt64(SHA256(concat(issuer_kind, ' ', issuer)))) as own_issuer
  from installs
  where verdict = 'verified' and attested_key != ''
)
array join arrayConcat(
  [('key', attested_key, device_hash, own_issuer)],
  if(
    issuer = '' or (issuer_kind = 'issuer' and device_model = ''),
    [],
    [(
      issuer_kind,
      issuer,
      if(
        issuer_kind = 'issuer',
        reinterpretAsUInt64(SHA256(concat('model ', device_model))),
        device_hash
      ),
      toUInt64(0)
    )]
  )
) as seen;
