-- Of the fraud that we know of, how much does each flag catch, and whom else does it hit?
--
-- Answer: one row per flag, best recall first: the fraudulent sessions that have it, their share of
-- all, and the range that contains the true share with 95 % confidence (Wilson); then the same of
-- honest sessions. Below ten sessions there is no share. Fraud that nobody has labelled yet counts
-- nowhere, and labels come late: as_of says when these were copied.
-- Do: raise the weight of flags with high recall and few honest sessions; look at what the missed
-- sessions have in common (question 41).
with
  known as (
    select outcome, arrayDistinct(arrayConcat(flags, risk_flags)) as codes
    from analytics.labelled_sessions
    where tenant_id = {tenant:String}
      and started_at >= {from:DateTime64(3, 'UTC')} and started_at < {to:DateTime64(3, 'UTC')}
  ),
  totals as (
    select countIf(outcome = 'fraud') as frauds, countIf(outcome = 'legitimate') as honests
    from known
  )
select
  flag,
  countIf(outcome = 'fraud') as fraud_sessions,
  if(any(frauds) < 10, null, round(fraud_sessions / any(frauds), 3)) as recall,
  round(greatest(0, (fraud_sessions + 1.9208) / (any(frauds) + 3.8416)
    - 1.96 * sqrt(if(any(frauds) = 0, 0, fraud_sessions * (any(frauds) - fraud_sessions)
      / any(frauds)) + 0.9604) / (any(frauds) + 3.8416)), 3) as recall_low,
  round(least(1, (fraud_sessions + 1.9208) / (any(frauds) + 3.8416)
    + 1.96 * sqrt(if(any(frauds) = 0, 0, fraud_sessions * (any(frauds) - fraud_sessions)
      / any(frauds)) + 0.9604) / (any(frauds) + 3.8416)), 3) as recall_high,
  countIf(outcome = 'legitimate') as honest_sessions,
  if(any(honests) < 10, null, round(honest_sessions / any(honests), 3)) as honest_share,
  (select max(copied_at) from analytics.freshness) as as_of
from known
array join codes as flag
cross join totals
group by flag
order by fraud_sessions desc, honest_sessions, flag
limit 300
