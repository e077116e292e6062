-- The parameters by which installs are recognised as those of one phone, in versions. A version
-- counts for installs that are received from its instant on, which lies ahead when it is written:
-- then every scorer knows it in time.

create table identity_parameters (
  tenant_id text not null references tenants on delete cascade,
  version integer not null
    constraint parameters_version_starts_at_one check (version >= 1),
  valid_from timestamptz not null,
  -- As `IdentityParameters` has them.
  parameters jsonb not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (tenant_id, version)
);
