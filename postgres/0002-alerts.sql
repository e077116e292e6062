-- Alerts, their exact totals and the history of their dispositions. Totals come from counters kept
-- in the same transaction as the change they count; never from count(*) over a tenant.

create table alerts (
  tenant_id text not null references tenants on delete cascade,
  -- By bytes, whatever the database's collation: the order of a list is part of its contract.
  alert_id text collate "C" not null,
  seq bigint not null,
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
  -- Milliseconds, as clients see it: a cursor must land on exactly what it was made from.
  created_at timestamptz(3) not null,
  primary key (tenant_id, alert_id)
);
create unique index one_seq_per_tenant on alerts (tenant_id, seq);
create unique index one_alert_per_device_session_and_action
  on alerts (tenant_id, device_id, session_id, action);
create index alerts_newest_first on alerts (tenant_id, created_at desc, alert_id desc);
-- One index for either filter and for both: a list by one of the two merges its few ranges.
create index alerts_by_disposition_and_decision
  on alerts (tenant_id, disposition, action, created_at desc, alert_id desc);
create index alerts_by_device on alerts (tenant_id, device_id, created_at desc, alert_id desc)
  include (disposition, action);
-- Operators name an alert without its tenant.
create index alerts_by_id on alerts (alert_id);

-- The row whose lock makes seq gap-free: taken before the alerts of its tenant are inserted.
create table alert_sequences (
  tenant_id text primary key references tenants on delete cascade,
  last_seq bigint not null default 0
);

-- Alerts per UTC day and per UTC hour. A total over any range of time is whole days, then whole
-- hours, then what is left of two hours, counted.
create table alert_counts (
  tenant_id text not null references tenants on delete cascade,
  day date not null,
  disposition text not null,
  decision text not null,
  n bigint not null,
  primary key (tenant_id, day, disposition, decision)
);

create table alert_counts_by_hour (
  tenant_id text not null references tenants on delete cascade,
  hour timestamptz not null,
  disposition text not null,
  decision text not null,
  n bigint not null,
  primary key (tenant_id, hour, disposition, decision)
);

create table alert_dispositions (
  disposition_id bigint generated always as identity primary key,
  tenant_id text not null,
  alert_id text collate "C" not null,
  from_disposition text not null,
  to_disposition text not null,
  actor text not null,
  note text,
  at timestamptz not null default clock_timestamp(),
  foreign key (tenant_id, alert_id) references alerts on delete cascade
);
create index dispositions_of_an_alert on alert_dispositions (tenant_id, alert_id, disposition_id);
