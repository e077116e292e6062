-- Install roots: install tokens and install keys of a tenant are derived from one. Two are valid at
-- once, so that installs can renew. An epoch is never used again.
--
-- current:  makes tokens.
-- next:     created by a rotation; valid, and makes tokens once every edge knows it.
-- previous: the one before; valid until it is dropped.
-- retired:  never valid again; its sealed value is gone.
create table install_roots (
  tenant_id text not null references tenants on delete cascade,
  epoch integer not null
    constraint root_epochs_start_at_one check (epoch >= 1),
  state text not null
    constraint root_state_is_known check (state in ('current', 'next', 'previous', 'retired')),
  sealed text,
  created_at timestamptz not null default clock_timestamp(),
  retired_at timestamptz,
  primary key (tenant_id, epoch),
  constraint a_root_is_sealed_until_it_is_retired check ((state = 'retired') = (sealed is null)),
  constraint a_retired_root_has_retired_at check ((state = 'retired') = (retired_at is not null))
);
create unique index one_install_root_makes_tokens_per_tenant
  on install_roots (tenant_id) where state = 'current';
create unique index one_other_install_root_is_valid_per_tenant
  on install_roots (tenant_id) where state in ('next', 'previous');

-- Telemetry that is signed with the HMAC secret itself is refused; registrations are not.
alter table tenants add column shared_secret_off boolean not null default false;
