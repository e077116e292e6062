-- Whose operators need a second factor: those of a tenant, or all of the console.
create table second_factor_rules (
  -- Null: all operators.
  tenant_id text references tenants on delete cascade,
  -- Sessions that began before it go on.
  since timestamptz(3) not null
);
create unique index second_factor_rules_are_one_each
  on second_factor_rules (coalesce(tenant_id, ''));
