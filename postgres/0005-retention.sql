-- One row: when the next retention round is due. Any number of consoles take turns by it; each round
-- removes what is older than the retention days of its tenant.
create table retention_rounds (
  singleton boolean primary key default true
    constraint retention_rounds_has_one_row check (singleton),
  due_at timestamptz not null default now()
);
insert into retention_rounds default values;
