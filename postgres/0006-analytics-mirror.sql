-- What the copier needs to find every change of alerts, dispositions and deliveries that it has not
-- copied to ClickHouse yet, in whatever order transactions commit: a row says which transaction
-- wrote it, and the copier keeps the snapshot up to which it has copied. What one snapshot sees and
-- the one before did not see is exactly what is new.

-- New alerts need nothing: their seq rises without a gap in the order of their commits. Rows from
-- before have no transaction: the first round copies everything.
alter table alert_dispositions add column written_by xid8;
alter table alert_dispositions alter column written_by set default pg_current_xact_id();
create index dispositions_as_written on alert_dispositions (written_by);

-- One more column in the insert that records an attempt, no other write.
alter table delivery_attempts add column written_by xid8;
alter table delivery_attempts alter column written_by set default pg_current_xact_id();
create index attempts_as_written on delivery_attempts (written_by);

-- What happens without an attempt: deliveries made later than their alert or without one, ends and
-- replays.
create table mirror_changes (
  written_by xid8 not null default pg_current_xact_id(),
  delivery_id text not null,
  primary key (written_by, delivery_id)
);

-- What is gone: the key that the copy has, nothing else.
create table mirror_removals (
  written_by xid8 not null default pg_current_xact_id(),
  kind text not null constraint removed_kind_is_known check (kind in ('alert', 'delivery')),
  tenant_id text not null,
  created_at timestamptz not null,
  id text not null,
  primary key (written_by, kind, tenant_id, created_at, id)
);

create function note_mirror_change() returns trigger language plpgsql as $$
begin
  insert into mirror_changes (delivery_id) values (new.delivery_id) on conflict do nothing;
  return null;
end $$;
-- A delivery that is made with its alert is due from the start and copied with it.
create trigger new_deliveries_without_a_new_alert_are_noted
  after insert on deliveries
  for each row when (new.alert_id is null or new.due_at <> new.created_at)
  execute function note_mirror_change();
-- A claim names none of these columns; of an attempt's end the condition is all that is evaluated.
create trigger ends_and_replays_without_an_attempt_are_noted
  after update of state, ended_at, attempts_before on deliveries
  for each row when (
    new.attempts = old.attempts
    and ((new.ended_at is null) <> (old.ended_at is null)
      or new.attempts_before <> old.attempts_before
      or (new.ended_at is not null and new.state <> old.state))
  ) execute function note_mirror_change();

create function note_mirror_removals() returns trigger language plpgsql as $$
begin
  if tg_table_name = 'alerts' then
    insert into mirror_removals (kind, tenant_id, created_at, id)
    select 'alert', tenant_id, created_at, alert_id from gone on conflict do nothing;
  else
    insert into mirror_removals (kind, tenant_id, created_at, id)
    select 'delivery', tenant_id, created_at, delivery_id from gone on conflict do nothing;
  end if;
  return null;
end $$;
create trigger removed_alerts_are_noted after delete on alerts
  referencing old table as gone for each statement execute function note_mirror_removals();
create trigger removed_deliveries_are_noted after delete on deliveries
  referencing old table as gone for each statement execute function note_mirror_removals();

-- How far the copy is. The round only rises: it is the version of every row that is copied in it.
create table mirror_state (
  only_one boolean primary key default true
    constraint there_is_only_one_mirror check (only_one),
  round bigint not null default 0,
  -- The last round whose copies are all in ClickHouse.
  completed bigint not null default 0,
  -- Everything that it sees is copied; null when nothing is.
  copied pg_snapshot,
  -- Transactions are numbered anew when a dump is loaded into another cluster.
  cluster text
);
insert into mirror_state default values;

create table mirror_alert_seqs (
  tenant_id text primary key references tenants on delete cascade,
  -- The tenant's last alert that is copied.
  seq bigint not null
);
