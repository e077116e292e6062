create or replace view {analytics:Identifier}.precision_by_reason (
  tenant_id LowCardinality(String) comment 'The tenant.',
  reason String comment 'The code of the reason.',
  seen_from Array(String)
    comment 'The signals that it was seen from together, sorted; of the device''s past, the metric.',
  alerts UInt64 comment 'How many alerts have it from just these.',
  confirmed UInt64 comment 'Of those, how many were CONFIRMED.',
  false_positive UInt64 comment 'Of those, how many were a FALSE_POSITIVE.',
  judged UInt64 comment 'confirmed + false_positive.',
  precision Nullable(Float64) comment 'confirmed / judged; null where fewer than 10 were judged.',
  precision_low Float64 comment 'The true precision is above this with 97.5 % confidence.',
  precision_high Float64 comment 'The true precision is below this with 97.5 % confidence.',
  base_precision Nullable(Float64) comment 'confirmed / judged of all of the tenant''s alerts.',
  lift Nullable(Float64) comment 'precision / base_precision: above 1 is better than the average alert.'
) as
select
  tenant_id, reason, seen_from, alerts, confirmed, false_positive, judged,
  if(judged >= 10, confirmed / judged, null) as precision,
  greatest(0, (confirmed + 1.9208) / (judged + 3.8416) - 1.96
    * sqrt(if(judged = 0, 0, confirmed * false_positive / judged) + 0.9604) / (judged + 3.8416))
    as precision_low,
  least(1, (confirmed + 1.9208) / (judged + 3.8416) + 1.96
    * sqrt(if(judged = 0, 0, confirmed * false_positive / judged) + 0.9604) / (judged + 3.8416))
    as precision_high,
  base.precision as base_precision,
  if(base.precision > 0, precision / base.precision, null) as lift
from (
  select
    tenant_id, reason,
    if(
      JSONHas(evidence, 'signals'),
      arraySort(JSONExtract(evidence, 'signals', 'Array(String)')),
      arrayFilter(metric -> metric != '', [JSONExtractString(evidence, 'metric')])
    ) as seen_from,
    count() as alerts, countIf(disposition = 'CONFIRMED') as confirmed,
    countIf(disposition = 'FALSE_POSITIVE') as false_positive,
    confirmed + false_positive as judged
  from alerts_replica final
  array join reason_codes as reason, reason_evidence as evidence
  group by tenant_id, reason, seen_from
) as counted
left join (
  select
    tenant_id,
    countIf(disposition = 'CONFIRMED')
      / nullIf(countIf(disposition in ('CONFIRMED', 'FALSE_POSITIVE')), 0) as precision
  from alerts_replica final
  group by tenant_id
) as base using (tenant_id)
comment 'How often each reason is right, by the signal behind it: a flag can be right for one signal and wrong for another. Cheap by tenant.';
