create or replace view {analytics:Identifier}.labels (
  tenant_id LowCardinality(String) comment 'The tenant.',
  created_at DateTime64(3, 'UTC') comment 'When the service received it.',
  label_id String comment 'The label.',
  subject_kind LowCardinality(String) comment 'event, session, device or user.',
  subject_id String comment 'The id of that event, session, device or user.',
  label LowCardinality(String)
    comment 'chargeback, account_takeover, promo_abuse, fraud, legitimate, retracted, or a code that the tenant declared.',
  occurred_at DateTime64(3, 'UTC') comment 'When it happened, as the sender says.',
  covered_days UInt16
    comment 'Of a device or user it covers the sessions that began up to so many days before occurred_at.',
  amount Decimal(18, 4) comment 'The money that was lost; 0 without an amount.',
  currency LowCardinality(String) comment 'ISO 4217; empty without an amount.',
  external_id String comment 'The sender''s own id of the case; empty when none.',
  note String comment 'What was noted; empty when nothing.',
  actor LowCardinality(String)
    comment 'Who labelled: the id of an operator, opr_..., or api-key: and its name.',
  is_latest Bool
    comment 'Whether it is the latest of its subject and external id. Only these count, and of these no retracted one.',
  code_means LowCardinality(String)
    comment 'What a declared code means: fraud or legitimate. Empty of the others, and of codes from before declarations, which are fraud.'
) as
select
  tenant_id, created_at, label_id, subject_kind, subject_id, label, occurred_at, covered_days,
  amount, currency, external_id, note, actor,
  toBool(seq = max(seq) over (partition by tenant_id, subject_kind, subject_id, external_id))
    as is_latest,
  code_means
from labels_replica final
comment 'Every label, superseded and retracted ones included. Copied from the service''s own database: freshness says up to when. A disposition is in alerts. Cheap by tenant.';
