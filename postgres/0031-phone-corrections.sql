-- What analysts say of the phone that an install is on, over what the service decided. The latest
-- correction of an install that is not undone counts, from its time on; an undo brings back the one
-- before it. Rows stay, so that what counted at an earlier time can be told.

create table phone_corrections (
  correction_id text primary key
    constraint correction_id_has_its_form check (correction_id ~ '^phc_[A-Za-z0-9_-]{22}$'),
  tenant_id text not null references tenants on delete cascade,
  -- The install.
  device_id text collate "C" not null
    constraint corrected_device_is_not_empty check (device_id <> ''),
  -- The phone that the service decided, which never changes.
  from_phone_id text not null
    constraint from_phone_id_has_its_form check (from_phone_id ~ '^phn_[A-Za-z0-9_-]{22}$'),
  -- The phone that the install is on; a phone of its own for a split.
  phone_id text not null
    constraint phone_id_has_its_form check (phone_id ~ '^phn_[A-Za-z0-9_-]{22}$'),
  reason text not null
    constraint a_correction_has_a_reason check (reason <> ''),
  actor text not null,
  -- It rises with every correction of an install.
  at timestamptz(3) not null,
  undone_by text,
  undone_at timestamptz(3),
  written_by_xid xid8 default pg_current_xact_id(),
  constraint an_undone_correction_has_both check ((undone_by is null) = (undone_at is null)),
  constraint a_correction_is_undone_later check (undone_at > at),
  constraint corrections_of_a_device_have_an_order unique (tenant_id, device_id, at)
);
create index corrections_to_a_phone on phone_corrections (tenant_id, phone_id)
  where undone_at is null;
create index corrections_from_a_phone on phone_corrections (tenant_id, from_phone_id)
  where undone_at is null;
create index corrections_undone on phone_corrections (undone_at) where undone_at is not null;
create index corrections_by_xid on phone_corrections (written_by_xid);

-- Up to when corrections are in ClickHouse; null when none are. An older release beside this one
-- moves the snapshot of alerts alone.
alter table replication_state add column corrections_snapshot pg_snapshot;

create trigger corrections_name_own_actors before insert on phone_corrections
  for each row execute function require_own_actor('actor');
create trigger undone_corrections_name_own_actors before update of undone_by on phone_corrections
  for each row execute function require_own_actor('undone_by');
