-- A policy beside the active one that decides and alerts nobody. Versions are only added: each says
-- from which instant on it decides, by the clock that events are received at, so that an event is
-- decided by the same one whenever it is delivered.

create table shadow_policies (
  tenant_id text not null references tenants on delete cascade,
  version integer not null constraint shadow_versions_start_at_one check (version >= 1),
  -- Null switches the shadow off.
  policy_hash text references policy_documents,
  effective_at timestamptz(3) not null,
  created_at timestamptz not null default now(),
  created_by text not null,
  primary key (tenant_id, version),
  constraint two_versions_never_begin_at_once unique (tenant_id, effective_at)
);

-- One row: what scorers ask for, once a second, to see whether what they remember is still right.
create table shadow_policy_changes (
  only_one boolean primary key default true
    constraint there_is_one_row check (only_one),
  changes bigint not null default 0
);
insert into shadow_policy_changes default values;
