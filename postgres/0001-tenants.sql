-- Tenants, their credentials and policies. Secrets are sealed under MASTER_KEY before they get
-- here; API keys are stored as SHA-256 only. The state machines are constraints whose names read as
-- laws.

create table tenants (
  tenant_id text primary key
    constraint tenant_id_is_a_slug check (tenant_id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  name text not null default '',
  environment text not null
    constraint environment_is_live_or_sandbox check (environment in ('live', 'sandbox')),
  status text not null default 'active'
    constraint status_is_active_or_suspended check (status in ('active', 'suspended')),
  -- Rises with every change of what the edges hold of this tenant: status, HMAC secret, policy,
  -- rate. One epoch names one content, so an older writer can never put an older state in a newer
  -- one's place. Stamped on every event.
  epoch bigint not null default 1
    constraint epochs_start_at_one check (epoch >= 1),
  policy_version integer not null default 1,
  -- Rates per tenant; null means the product's default.
  ingest_rate_per_second double precision,
  ingest_burst double precision,
  rest_rate_per_second double precision,
  rest_burst double precision,
  created_at timestamptz not null default now(),
  constraint an_ingest_rate_is_whole_and_positive
    check (num_nulls(ingest_rate_per_second, ingest_burst) in (0, 2)
      and ingest_rate_per_second > 0 and ingest_burst >= 1),
  constraint a_rest_rate_is_whole_and_positive
    check (num_nulls(rest_rate_per_second, rest_burst) in (0, 2)
      and rest_rate_per_second > 0 and rest_burst >= 1)
);

-- active:  in use.
-- off:     turned off by a rotation that is under way; active again when the rotation is undone.
-- pending: made by that rotation, not on yet and known to nobody.
-- retired: dead for good. The newest retired HMAC secret stays, so that requests that are still
--          signed with it can be counted; the others keep their last four characters only.
create table tenant_secrets (
  tenant_id text not null references tenants on delete cascade,
  kind text not null
    constraint secret_kind_is_known check (kind in ('hmac', 'webhook')),
  state text not null
    constraint secret_state_is_known check (state in ('active', 'off', 'pending', 'retired')),
  secret_id bigint generated always as identity primary key,
  sealed text,
  last4 text not null,
  created_at timestamptz not null default now(),
  retired_at timestamptz,
  constraint a_secret_is_sealed_until_it_is_retired check (state = 'retired' or sealed is not null),
  constraint a_retired_secret_has_its_moment check ((state = 'retired') = (retired_at is not null))
);
create unique index one_secret_in_use_per_tenant_and_kind
  on tenant_secrets (tenant_id, kind) where state in ('active', 'off');
create unique index a_new_secret_waits_until_the_old_one_is_off
  on tenant_secrets (tenant_id, kind) where state in ('active', 'pending');
create index secrets_of_a_rotation_under_way
  on tenant_secrets (tenant_id) where state in ('off', 'pending');
create index secrets_of_a_tenant on tenant_secrets (tenant_id, kind, secret_id desc);

create table api_keys (
  key_hash bytea primary key
    constraint key_hash_is_sha256 check (octet_length(key_hash) = 32),
  tenant_id text not null references tenants on delete cascade,
  state text not null
    constraint key_state_is_known check (state in ('active', 'retired')),
  prefix text not null,
  last4 text not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  retired_at timestamptz,
  constraint a_retired_key_has_its_moment check ((state = 'retired') = (retired_at is not null))
);
create unique index one_active_api_key_per_tenant on api_keys (tenant_id) where state = 'active';
create index api_keys_of_a_tenant on api_keys (tenant_id);

-- Policy documents by content address; a tenant's versions point at them and stay for good.
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

create table webhooks (
  tenant_id text primary key references tenants on delete cascade,
  url text,
  state text not null default 'off'
    constraint webhook_state_is_known check (state in ('on', 'off', 'paused')),
  -- Why it is off: 'operator', 'gone' (the receiver answered 410), 'failing'.
  off_reason text,
  changed_at timestamptz not null default now(),
  constraint a_webhook_that_is_on_has_a_url check (state <> 'on' or url is not null)
);

-- Who did what to whom; secrets never. Append-only: the trigger refuses anything else.
create table audit (
  audit_id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  actor text not null,
  tenant_id text,
  action text not null,
  before jsonb,
  after jsonb
);
create index audit_by_tenant on audit (tenant_id, audit_id desc);

create function refuse_audit_change() returns trigger language plpgsql as $$
begin
  raise exception 'the audit log is append-only' using errcode = 'restrict_violation';
end $$;
create trigger audit_is_append_only before update or delete or truncate on audit
  for each statement execute function refuse_audit_change();
