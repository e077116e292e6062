-- Replication of alerts, dispositions and deliveries to ClickHouse. Each row records the transaction
-- that wrote it, and replication records the snapshot that it has replicated. The rows that the
-- current snapshot sees and the recorded one does not are the new ones, in whatever order
-- transactions commit. New alerts need no record: their seq rises without a gap in commit order.

-- Changes of deliveries without an attempt: a delivery created after its alert or without one, an
-- end, a replay.
create table replication_changes (
  written_by_xid xid8 not null default pg_current_xact_id(),
  delivery_id text not null,
  primary key (written_by_xid, delivery_id)
);

-- Keys of removed rows.
create table replication_removals (
  written_by_xid xid8 not null default pg_current_xact_id(),
  kind text not null constraint removed_kind_is_known check (kind in ('alert', 'delivery')),
  tenant_id text not null,
  created_at timestamptz not null,
  id text not null,
  primary key (written_by_xid, kind, tenant_id, created_at, id)
);

-- Months of deliveries that `drop_expired_delivery_month` dropped.
create table replication_removed_months (
  written_by_xid xid8 not null default pg_current_xact_id(),
  month date not null,
  primary key (written_by_xid, month)
);

create function record_delivery_change() returns trigger language plpgsql as $$
begin
  insert into replication_changes (delivery_id) values (new.delivery_id) on conflict do nothing;
  return null;
end $$;
-- A delivery created with its alert is due at once and replicated with the alert.
create trigger deliveries_without_a_new_alert_are_recorded
  after insert on deliveries
  for each row when (new.alert_id is null or new.due_at <> new.created_at)
  execute function record_delivery_change();
-- A claim updates none of these columns; recording an attempt only evaluates the condition.
create trigger ends_and_replays_without_an_attempt_are_recorded
  after update of state, ended_at, attempts_before_replay on deliveries
  for each row when (
    new.attempts = old.attempts
    and ((new.ended_at is null) <> (old.ended_at is null)
      or new.attempts_before_replay <> old.attempts_before_replay
      or (new.ended_at is not null and new.state <> old.state))
  ) execute function record_delivery_change();

create function record_removals() returns trigger language plpgsql as $$
begin
  if tg_table_name = 'alerts' then
    insert into replication_removals (kind, tenant_id, created_at, id)
    select 'alert', tenant_id, created_at, alert_id from removed on conflict do nothing;
  else
    insert into replication_removals (kind, tenant_id, created_at, id)
    select 'delivery', tenant_id, created_at, delivery_id from removed on conflict do nothing;
  end if;
  return null;
end $$;
create trigger removed_alerts_are_recorded after delete on alerts
  referencing old table as removed for each statement execute function record_removals();
create trigger removed_deliveries_are_recorded after delete on deliveries
  referencing old table as removed for each statement execute function record_removals();

-- One row: how far replication is. The round only rises; it is the version of every replicated row.
create table replication_state (
  singleton boolean primary key default true
    constraint replication_state_has_one_row check (singleton),
  round bigint not null default 0,
  -- The last round whose rows are all in ClickHouse.
  completed_round bigint not null default 0,
  -- Everything that this snapshot sees is replicated; null when nothing is.
  replicated_snapshot pg_snapshot,
  -- Transaction ids start again when a dump is restored into another cluster.
  cluster_id text,
  constraint completed_rounds_have_begun check (completed_round <= round)
);
insert into replication_state default values;

create table replication_alert_seqs (
  tenant_id text primary key references tenants on delete cascade,
  -- The last replicated alert of the tenant.
  seq bigint not null
);
