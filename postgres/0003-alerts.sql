-- Alerts, the history of their dispositions, and their exact totals: counters that are updated in
-- the transaction of the change that they count.

create table alerts (
  tenant_id text not null references tenants on delete cascade,
  -- Ordered by bytes whatever the database's collation: the order of a list is part of the API.
  alert_id text collate "C" not null,
  seq bigint not null constraint seq_starts_at_one check (seq >= 1),
  device_id text not null,
  session_id text not null,
  user_id text,
  event_id text not null,
  action text not null
    constraint only_review_and_block_raise_alerts check (action in ('REVIEW', 'BLOCK')),
  risk_score integer not null
    constraint risk_score_is_0_to_100 check (risk_score between 0 and 100),
  rasp_score integer not null
    constraint rasp_score_is_0_to_100 check (rasp_score between 0 and 100),
  reasons jsonb not null,
  policy_version integer not null,
  disposition text not null default 'OPEN'
    constraint disposition_is_known
    check (disposition in ('OPEN', 'REVIEWED', 'FALSE_POSITIVE', 'CONFIRMED')),
  -- Milliseconds, as clients see it: a cursor must match its row exactly.
  created_at timestamptz(3) not null,
  primary key (tenant_id, alert_id)
);
create unique index one_seq_per_tenant on alerts (tenant_id, seq);
create unique index one_alert_per_device_session_and_action
  on alerts (tenant_id, device_id, session_id, action);
create index alerts_newest_first on alerts (tenant_id, created_at desc, alert_id desc);
-- Serves either filter and both: a list by one of them merges a few ranges.
create index alerts_by_disposition_and_decision
  on alerts (tenant_id, disposition, action, created_at desc, alert_id desc);
create index alerts_by_device on alerts (tenant_id, device_id, created_at desc, alert_id desc)
  include (disposition, action);
-- Operators name an alert without its tenant.
create unique index alerts_by_id on alerts (alert_id);
-- Erasure of a user looks up alerts that name the user, and alerts raised by the user's events.
create index alerts_by_user on alerts (tenant_id, user_id) where user_id is not null;
create index alerts_by_event on alerts (tenant_id, event_id);

-- The lock of this row makes seq gap-free: it is taken before the tenant's alerts are inserted.
create table alert_sequences (
  tenant_id text primary key references tenants on delete cascade,
  last_seq bigint not null default 0
    constraint last_seq_is_not_negative check (last_seq >= 0)
);

-- Alerts per UTC day and per UTC hour. A total over a time range is the sum of whole days, then of
-- whole hours, then a count over what is left of at most two hours.
create table alert_counts_by_day (
  tenant_id text not null references tenants on delete cascade,
  day date not null,
  disposition text not null
    constraint counted_disposition_is_known
    check (disposition in ('OPEN', 'REVIEWED', 'FALSE_POSITIVE', 'CONFIRMED')),
  decision text not null
    constraint counted_decision_is_known check (decision in ('REVIEW', 'BLOCK')),
  alert_count bigint not null,
  primary key (tenant_id, day, disposition, decision)
);

create table alert_counts_by_hour (
  tenant_id text not null references tenants on delete cascade,
  hour timestamptz not null,
  disposition text not null
    constraint counted_disposition_is_known
    check (disposition in ('OPEN', 'REVIEWED', 'FALSE_POSITIVE', 'CONFIRMED')),
  decision text not null
    constraint counted_decision_is_known check (decision in ('REVIEW', 'BLOCK')),
  alert_count bigint not null,
  primary key (tenant_id, hour, disposition, decision)
);

create table alert_dispositions (
  disposition_id bigint generated always as identity primary key,
  tenant_id text not null,
  alert_id text collate "C" not null,
  from_disposition text not null
    constraint from_disposition_is_known
    check (from_disposition in ('OPEN', 'REVIEWED', 'FALSE_POSITIVE', 'CONFIRMED')),
  to_disposition text not null
    constraint to_disposition_is_known
    check (to_disposition in ('OPEN', 'REVIEWED', 'FALSE_POSITIVE', 'CONFIRMED')),
  actor text not null,
  note text,
  at timestamptz not null default clock_timestamp(),
  -- Replication to ClickHouse finds changes by the transaction that wrote them.
  written_by_xid xid8 not null default pg_current_xact_id(),
  foreign key (tenant_id, alert_id) references alerts on delete cascade
);
create index dispositions_of_an_alert on alert_dispositions (tenant_id, alert_id, disposition_id);
create index dispositions_by_xid on alert_dispositions (written_by_xid);
