-- Which address of a client counts, whether it is kept, and the key that addresses are hashed under.

alter table tenants
  add column client_address text not null default 'connection'
    constraint client_address_is_known check (client_address in ('connection', 'body')),
  add column store_client_address boolean not null default false;

-- One key per tenant, for good: two events of one address have one hash for as long as they are kept.
create table address_keys (
  tenant_id text primary key references tenants on delete cascade,
  sealed text not null,
  created_at timestamptz not null default clock_timestamp()
);
