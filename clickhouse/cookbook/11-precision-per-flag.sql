-- How often is each flag right, among the alerts that people have judged?
--
-- Answer: one row per flag with its CONFIRMED and FALSE_POSITIVE alerts. The range contains the
-- true precision with 95 % confidence (Wilson). It is wide when few alerts are judged.
-- Do: lower the weight of flags whose whole range is low; judge more alerts where the range is
-- wide.
select
  code as flag,
  count() as alerts,
  countIf(disposition = 'CONFIRMED') as confirmed,
  countIf(disposition = 'FALSE_POSITIVE') as false_positive,
  confirmed + false_positive as judged,
  round(confirmed / judged, 3) as precision,
  round(greatest(0, (confirmed + 1.9208) / (judged + 3.8416)
    - 1.96 * sqrt(confirmed * false_positive / judged + 0.9604) / (judged + 3.8416)), 3) as low,
  round(least(1, (confirmed + 1.9208) / (judged + 3.8416)
    + 1.96 * sqrt(confirmed * false_positive / judged + 0.9604) / (judged + 3.8416)), 3) as high
from analytics.reasons
where tenant_id = {tenant:String}
  and created_at >= {from:DateTime64(3, 'UTC')} and created_at < {to:DateTime64(3, 'UTC')}
group by code
having judged > 0
order by low desc, flag
