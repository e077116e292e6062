-- Erasures of devices and users, as jobs that survive a crash. One of a tenant runs at a time, under
-- a named lock.

create table erasures (
  erasure_id text primary key,
  tenant_id text not null references tenants on delete cascade,
  kind text not null constraint erasure_kind_is_known check (kind in ('device', 'user')),
  subject_sha256 text not null,
  -- The id, sealed under MASTER_KEY, for as long as it is needed.
  sealed text,
  requested_by text not null,
  -- How often it was requested; a request during a run asks for another pass.
  requests integer not null default 1,
  state text not null default 'waiting'
    constraint erasure_state_is_known check (state in ('waiting', 'running', 'done', 'failed')),
  attempts integer not null default 0,
  -- When it is tried next. It is set at the start of an attempt, so that a crash repeats it later.
  next_at timestamptz not null default clock_timestamp(),
  -- By store: how far it is, and what the store held before the first attempt.
  progress jsonb not null default '{}',
  before json not null default '{}',
  -- Why the last attempt did not complete it.
  problem text,
  -- As it was written, with the order of its counts.
  receipt json,
  created_at timestamptz(3) not null default clock_timestamp(),
  started_at timestamptz(3),
  ended_at timestamptz(3),
  constraint an_ended_erasure_has_ended_at
    check ((state in ('done', 'failed')) = (ended_at is not null)),
  constraint an_ended_erasure_keeps_no_id check ((ended_at is null) = (sealed is not null)),
  constraint a_done_erasure_has_a_receipt check ((state = 'done') = (receipt is not null))
);
create unique index one_erasure_of_a_subject_at_a_time
  on erasures (tenant_id, kind, subject_sha256) where ended_at is null;
create index erasures_to_do on erasures (next_at) where ended_at is null;
create index erasures_of_a_tenant on erasures (tenant_id, created_at desc, erasure_id desc);
create index erasures_ended on erasures (ended_at) where ended_at is not null;
