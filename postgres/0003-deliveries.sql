-- Deliveries: the row is the truth, the JetStream message only a hint. A delivery is claimed,
-- tried, and rescheduled or ended; its body is the bytes that every attempt sends.

create table deliveries (
  tenant_id text not null references tenants on delete cascade,
  delivery_id text primary key,
  alert_id text,
  event text not null default 'risk.alert',
  body bytea not null,
  state text not null default 'pending'
    constraint delivery_state_is_known
    check (state in ('pending', 'sending', 'delivered', 'failed', 'skipped')),
  attempts integer not null default 0,
  -- When it is due; while it is being sent, when its claim runs out and others may take it.
  due_at timestamptz not null default now(),
  claimed_by text,
  created_at timestamptz not null default now(),
  ended_at timestamptz,
  -- Why it ended: 'no_webhook', 'exhausted', 'gone'. Null when it was delivered.
  reason text,
  constraint only_a_claimed_delivery_is_sending
    check ((state = 'sending') = (claimed_by is not null)),
  constraint an_ended_delivery_has_an_end
    check ((state in ('delivered', 'failed', 'skipped')) = (ended_at is not null))
);
-- Every tenant has two queues, first attempts and retries, and each is claimed from its own front:
-- a tenant's backlog is never walked to reach another tenant's delivery.
create index deliveries_due on deliveries (tenant_id, (attempts > 0), due_at)
  where state in ('pending', 'sending');
create index deliveries_of_a_tenant on deliveries (tenant_id, created_at desc, delivery_id desc);
create index deliveries_of_an_alert on deliveries (tenant_id, alert_id);
-- Each attempt leaves two dead versions of its row behind, at the very front of the queues.
alter table deliveries
  set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

create table delivery_attempts (
  delivery_id text not null references deliveries on delete cascade,
  attempt integer not null,
  at timestamptz not null,
  duration_ms integer not null,
  -- The receiver's status, or null when there was no answer.
  status integer,
  -- 'status', 'dns', 'refused_address', 'connect', 'tls', 'timeout', 'reset', 'protocol', or null
  -- on success.
  error_kind text,
  error text,
  address text,
  -- The first 4 KiB of the answer.
  answer text,
  primary key (delivery_id, attempt)
);
