-- Why do attestations fail, and on which phones?
--
-- Answer: one row per provider and reason of a rejection, most devices first, with the share of the
-- provider's devices, the number of phone models and the three most frequent of them. A reason on
-- many models of one maker is a fault of theirs; one that is new with an SDK version is a mistake in
-- its calls; revoked keys and unlocked phones come a few at a time.
-- Do: run `di attestation check` on a chain of such a phone; weigh the reason in the policy by what it
-- costs honest users.
select
  provider,
  reason,
  uniqExact(device_id) as devices,
  round(devices / any(of_provider), 3) as share_of_provider,
  count() as registrations,
  uniqExactIf(device_model, device_model != '') as models,
  -- Counted, not topK: of models that are as frequent, the same ones each time.
  sumMapIf([device_model], [toInt64(1)], device_model != '') as of_model,
  arrayStringConcat(
    arraySlice(arraySort((model, n) -> (-n, model), of_model.1, of_model.2), 1, 3), ', '
  ) as often_on,
  max(received_at) as last_at
from (
  select provider, reason, verdict, device_id, device_model, received_at
  from analytics.installs
  where tenant_id = {tenant:String}
    and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
) as registered
inner join (
  select provider, uniqExact(device_id) as of_provider
  from analytics.installs
  where tenant_id = {tenant:String}
    and received_at >= {from:DateTime64(3, 'UTC')} and received_at < {to:DateTime64(3, 'UTC')}
  group by provider
) as totals using (provider)
where verdict = 'rejected'
group by provider, reason
order by devices desc, provider, reason
limit 1000
