-- How old a reading of a webhook secret may be when a delivery process signs with it. A rotation
-- waits as long, so the old secret is dead when it returns.

create table webhook_secret_lease (
  one_row boolean primary key default true
    constraint there_is_one_lease_for_all check (one_row),
  lease_ms integer not null constraint a_lease_lasts check (lease_ms > 0),
  -- What is read after this has the default lease again.
  extended_until timestamptz not null
);
insert into webhook_secret_lease (lease_ms, extended_until) values (1, '-infinity');
