-- Tenants, their credentials and the audit log. Secrets arrive sealed under MASTER_KEY; API keys are
-- stored as SHA-256 only. Constraint names state the rule that they enforce.

create table tenants (
  tenant_id text primary key
    constraint tenant_id_is_a_slug check (tenant_id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  name text not null default '',
  environment text not null
    constraint environment_is_live_or_sandbox check (environment in ('live', 'sandbox')),
  status text not null default 'active'
    constraint status_is_active_or_suspended check (status in ('active', 'suspended')),
  -- Rises with every change that the edges must apply: status, HMAC secret, policy, rates. One epoch
  -- names one content, so an older writer cannot overwrite a newer state. Stamped on every event.
  epoch bigint not null default 1
    constraint epochs_start_at_one check (epoch >= 1),
  policy_version integer not null default 1
    constraint policy_version_starts_at_one check (policy_version >= 1),
  -- Limits per tenant; null means the default of the product.
  rest_rate_per_second double precision,
  rest_burst double precision,
  ingest_rate_per_second double precision,
  ingest_burst double precision,
  ingest_bytes_per_second double precision,
  ingest_bytes_burst double precision,
  -- The share of the telemetry stream that may wait undecided.
  ingest_share double precision,
  -- The number of the telemetry stream that has its events. It is chosen at the creation of the
  -- tenant and never changes.
  telemetry_stream integer not null default 1
    constraint telemetry_streams_start_at_one check (telemetry_stream >= 1),
  -- Days that data is kept; null means the default of the product, 0 means forever.
  event_retention_days integer
    constraint event_retention_is_in_range check (event_retention_days between 0 and 36500),
  alert_retention_days integer
    constraint alert_retention_is_in_range check (alert_retention_days between 0 and 36500),
  delivery_retention_days integer
    constraint delivery_retention_is_in_range check (delivery_retention_days between 0 and 36500),
  created_at timestamptz not null default now(),
  constraint rest_rate_and_burst_are_set_together_and_positive
    check (num_nulls(rest_rate_per_second, rest_burst) in (0, 2)
      and rest_rate_per_second > 0 and rest_burst >= 1),
  constraint ingest_rate_and_burst_are_set_together_and_positive
    check (num_nulls(ingest_rate_per_second, ingest_burst) in (0, 2)
      and ingest_rate_per_second > 0 and ingest_burst >= 1),
  -- A burst admits the largest body.
  constraint ingest_bytes_and_burst_are_set_together_and_admit_any_body
    check (num_nulls(ingest_bytes_per_second, ingest_bytes_burst) in (0, 2)
      and ingest_bytes_per_second > 0 and ingest_bytes_burst >= 65536),
  constraint ingest_share_leaves_room_for_others
    check (ingest_share > 0 and ingest_share <= 0.9)
);

-- active:  in use.
-- off:     turned off by a rotation in progress; active again when the rotation is undone.
-- pending: created by that rotation, not in use yet and not shown to anyone.
-- retired: never valid again. The newest retired HMAC secret keeps its sealed value, so that
--          requests signed with it can be counted; the others keep their last four characters.
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
  constraint a_retired_secret_has_retired_at check ((state = 'retired') = (retired_at is not null))
);
create unique index one_secret_in_use_per_tenant_and_kind
  on tenant_secrets (tenant_id, kind) where state in ('active', 'off');
create unique index a_new_secret_waits_until_the_old_one_is_off
  on tenant_secrets (tenant_id, kind) where state in ('active', 'pending');
create index secrets_in_rotation
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
  constraint a_retired_key_has_retired_at check ((state = 'retired') = (retired_at is not null))
);
create unique index one_active_api_key_per_tenant on api_keys (tenant_id) where state = 'active';
create index api_keys_of_a_tenant on api_keys (tenant_id);

-- The latest rotation of each tenant: how far it is, and for the person who began it the new
-- credentials, sealed, until they are kept or have expired.
create table rotations (
  tenant_id text primary key references tenants on delete cascade,
  rotation_id text not null,
  started_by text not null,
  started_at timestamptz not null default clock_timestamp(),
  state text not null
    constraint rotation_state_is_known check (state in ('running', 'done', 'failed')),
  -- What each edge has confirmed, and why it failed.
  progress jsonb not null,
  keys_sealed text,
  keys_until timestamptz,
  constraint only_a_rotation_that_is_done_has_keys check (keys_sealed is null or state = 'done'),
  constraint kept_keys_expire check ((keys_sealed is null) = (keys_until is null))
);
create index rotations_with_keys on rotations (keys_until) where keys_until is not null;

-- Who changed what, without secrets. Rows outlive their tenant. Triggers keep the table append-only
-- until an entry is older than audit_retention allows.
create table audit_log (
  audit_id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  actor text not null,
  tenant_id text,
  -- noun.verb in the past tense: tenant.created.
  action text not null
    constraint action_is_noun_dot_verb check (action ~ '^[a-z_]+\.[a-z_]+$'),
  before jsonb,
  after jsonb
);
create index audit_log_by_tenant on audit_log (tenant_id, audit_id desc);
create index audit_log_by_actor on audit_log (actor, audit_id desc);
create index audit_log_by_action on audit_log (action, audit_id desc);
create index audit_log_by_age on audit_log (at);

-- One row: how many days audit entries are kept; 0 keeps them forever. Only the owner may change it,
-- so a process cannot shorten the log.
create table audit_retention (
  singleton boolean primary key default true
    constraint audit_retention_has_one_row check (singleton),
  days integer not null default 400
    constraint audit_retention_is_a_month_or_more check (days = 0 or days between 30 and 36500)
);
insert into audit_retention default values;

-- Entries before this instant may be removed; null when none may.
create function audit_log_expiry() returns timestamptz language sql stable as $$
  select now() - make_interval(days => days) from public.audit_retention where days > 0
$$;

create function refuse_audit_log_change() returns trigger language plpgsql as $$
begin
  raise exception 'the audit log is append-only' using errcode = 'restrict_violation';
end $$;
create trigger audit_log_is_append_only before update or truncate on audit_log
  for each statement execute function refuse_audit_log_change();
create trigger audit_entries_are_kept before delete on audit_log
  for each row when (old.at >= coalesce(audit_log_expiry(), '-infinity'))
  execute function refuse_audit_log_change();

-- Removes expired entries, oldest first; the console may call it. It runs as the owner, because no
-- process may delete entries.
-- @returns how many were removed; fewer than `most` means that none is left
create function remove_expired_audit_entries(most integer) returns integer
  language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  removed integer;
begin
  delete from audit_log where audit_id in (
    select audit_id from audit_log where at < audit_log_expiry() order by at limit most);
  get diagnostics removed = row_count;
  return removed;
end $$;
revoke execute on function remove_expired_audit_entries(integer) from public;
