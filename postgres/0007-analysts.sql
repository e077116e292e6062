-- Who of a tenant may ask the analytics views, apart from the service itself. Where ClickHouse keeps
-- users of its own, the row only says that there is one and its password is ClickHouse's business;
-- beside the embedded engine, which keeps none, the password is checked against the hash here.

create table analysts (
  tenant_id text not null references tenants on delete cascade,
  name text not null
    constraint an_analyst_has_a_plain_name check (name ~ '^[a-z0-9][a-z0-9-]{0,31}$'),
  -- SHA-256 of 32 random bytes; null when ClickHouse has it.
  password_hash bytea
    constraint a_hash_is_a_sha256 check (octet_length(password_hash) = 32),
  created_at timestamptz not null default now(),
  created_by text not null,
  primary key (tenant_id, name)
);
