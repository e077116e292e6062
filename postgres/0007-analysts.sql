-- SQL users of a tenant for the analytics views. Where ClickHouse stores users, ClickHouse checks
-- the password and the row records that the user exists. The embedded engine stores no users, so
-- the password is checked against the hash here.

create table analysts (
  tenant_id text not null references tenants on delete cascade,
  name text not null
    constraint analyst_name_is_a_slug check (name ~ '^[a-z0-9][a-z0-9-]{0,31}$'),
  -- SHA-256 of 32 random bytes; null when ClickHouse stores the password.
  password_hash bytea
    constraint password_hash_is_sha256 check (octet_length(password_hash) = 32),
  created_at timestamptz not null default now(),
  created_by text not null,
  primary key (tenant_id, name)
);
