-- Which attestation keys or certificates are on more phones than they are for?
--
-- Answer: one row per shared key or certificate of verified registrations, most devices first. A key
-- belongs to one phone, and so does a certificate that was provisioned remotely; one of a factory's
-- batch is for one product, so many models mean that it leaked.
-- Do: open the devices, and deny them when the models differ; report the certificate to Google.
-- Parameters: models_max = 24
select
  kind,
  certificate_or_key,
  uniqExact(device_id) as devices,
  uniqExactIf(device_model, device_model != '') as models,
  arrayStringConcat(arraySlice(arraySort(groupUniqArray(device_model)), 1, 5), ', ') as some_models,
  min(received_at) as first_at,
  max(received_at) as last_at
from (
  select
    device_id, device_model, received_at, on_key.1 as kind, on_key.2 as certificate_or_key
  from analytics.installs
  array join [
    ('key', attested_key),
    (if(remotely_provisioned, 'certificate of one phone', 'certificate of a batch'), issuers[1])
  ] as on_key
  where tenant_id = {tenant:String}
    and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
    and verdict = 'verified' and on_key.2 != ''
    and (on_key.1 = 'key' or provider = 'key_attestation')
)
group by kind, certificate_or_key
having if(kind = 'certificate of a batch', models > {models_max:UInt32}, devices > 1)
order by devices desc, kind, certificate_or_key
limit 1000
