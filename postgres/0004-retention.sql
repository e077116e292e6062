-- How long a tenant's data is kept, in days: null is the product's default, 0 is without limit.
-- What is older is removed by the consoles in rounds; the one row of retention_rounds says when the
-- next is due, so that any number of consoles take turns.

alter table tenants
  add column events_days integer
    constraint events_are_kept_for_days_or_without_limit check (events_days between 0 and 36500),
  add column alerts_days integer
    constraint alerts_are_kept_for_days_or_without_limit check (alerts_days between 0 and 36500),
  add column deliveries_days integer
    constraint deliveries_are_kept_for_days_or_without_limit
    check (deliveries_days between 0 and 36500);

create table retention_rounds (
  only_one boolean primary key default true
    constraint there_is_only_one check (only_one),
  due_at timestamptz not null default now()
);
insert into retention_rounds default values;

-- The oldest ended deliveries of a tenant, however many are still waiting.
create index deliveries_ended_oldest_first on deliveries (tenant_id, ended_at)
  where ended_at is not null;
