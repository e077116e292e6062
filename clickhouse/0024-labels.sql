-- A copy of labels, written by replication from Postgres. A row replaces the one of an earlier
-- round. Superseded labels and retractions are here too: the highest seq of a subject and external
-- id counts.

create table if not exists labels_replica (
  tenant_id LowCardinality(String),
  -- When the service received it.
  created_at DateTime64(3, 'UTC'),
  label_id String,
  -- Rises in the order of receipt.
  seq UInt64,
  -- event, session, device or user.
  subject_kind LowCardinality(String),
  subject_id String,
  -- chargeback, account_takeover, promo_abuse, fraud, legitimate, retracted or an own code.
  label LowCardinality(String),
  occurred_at DateTime64(3, 'UTC'),
  -- Of a device or a user: sessions up to so many days before occurred_at are covered.
  covered_days UInt16,
  -- 0 without an amount.
  amount Decimal(18, 4),
  -- Empty without an amount.
  currency LowCardinality(String),
  -- Empty when the sender named none.
  external_id String,
  note String,
  -- An operator's id, or api-key: and its name.
  actor LowCardinality(String),
  round UInt64,
  -- 1: removed from Postgres; only the key is set.
  removed UInt8,
  index label_subject_bloom subject_id type bloom_filter(0.01) granularity 1
)
engine = ReplacingMergeTree(round, removed)
order by (tenant_id, created_at, label_id)
settings index_granularity = 1024;
