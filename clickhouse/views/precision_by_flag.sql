create or replace view {analytics:Identifier}.precision_by_flag (
  tenant_id LowCardinality(String) comment 'The tenant.',
  flag String comment 'A code of alerts'' reasons.',
  alerts UInt64 comment 'How many alerts have it.',
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
  tenant_id, flag, alerts, confirmed, false_positive, judged,
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
    tenant_id, flag, count() as alerts, countIf(disposition = 'CONFIRMED') as confirmed,
    countIf(disposition = 'FALSE_POSITIVE') as false_positive,
    confirmed + false_positive as judged
  from alerts_replica final
  array join arrayDistinct(reason_codes) as flag
  group by tenant_id, flag
) as counted
left join (
  select
    tenant_id,
    countIf(disposition = 'CONFIRMED')
      / nullIf(countIf(disposition in ('CONFIRMED', 'FALSE_POSITIVE')), 0) as precision
  from alerts_replica final
  group by tenant_id
) as base using (tenant_id)
comment 'How often each flag is right, of the alerts that people have judged. The bounds are Wilson''s: few judgements give a wide range, never a certainty. Cheap by tenant.';
