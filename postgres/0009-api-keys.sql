-- Named API keys with scopes, beside the one key that comes with a tenant. Every key reads; a scope
-- adds what else it may do. Named keys are made and removed one by one; a rotation replaces the
-- unnamed one only.

alter table api_keys
  add column name text
    constraint key_name_is_a_slug check (name ~ '^[a-z0-9][a-z0-9-]{0,31}$'),
  add column scopes text[] not null default '{}'
    constraint scopes_are_known check (scopes <@ array['read', 'alerts:write', 'lists:write']),
  add column created_by text,
  add constraint only_named_keys_have_scopes check (name is not null or scopes = '{}');
drop index one_active_api_key_per_tenant;
create unique index one_active_unnamed_api_key_per_tenant
  on api_keys (tenant_id) where state = 'active' and name is null;
create unique index names_of_active_api_keys_are_unique
  on api_keys (tenant_id, name) where state = 'active' and name is not null;
