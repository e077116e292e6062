-- Scoring policies: documents by content hash, the versions of each tenant, and shadow policies,
-- which decide beside the active one without raising alerts.

create table policy_documents (
  policy_hash text primary key,
  document jsonb not null,
  -- The exact JSON text that was hashed: jsonb does not keep the order of keys.
  text text not null
);

create table tenant_policies (
  tenant_id text not null references tenants on delete cascade,
  version integer not null constraint policy_versions_start_at_one check (version >= 1),
  policy_hash text not null references policy_documents,
  created_at timestamptz not null default now(),
  created_by text not null,
  primary key (tenant_id, version)
);
-- Deferred: a tenant and its first version refer to each other.
alter table tenants
  add constraint policy_version_exists foreign key (tenant_id, policy_version)
    references tenant_policies (tenant_id, version) deferrable initially deferred;

-- Versions are only added. Each says from which received_at on it decides, so that redelivery of an
-- event is decided by the same version.
create table shadow_policies (
  tenant_id text not null references tenants on delete cascade,
  version integer not null constraint shadow_versions_start_at_one check (version >= 1),
  -- Null switches the shadow off.
  policy_hash text references policy_documents,
  effective_at timestamptz(3) not null,
  created_at timestamptz not null default now(),
  created_by text not null,
  primary key (tenant_id, version),
  constraint one_shadow_version_per_instant unique (tenant_id, effective_at)
);

-- One row. Scorers poll it once a second to find out whether their cached shadow policies are
-- current.
create table shadow_policy_changes (
  singleton boolean primary key default true
    constraint shadow_policy_changes_has_one_row check (singleton),
  changes bigint not null default 0
);
insert into shadow_policy_changes default values;
