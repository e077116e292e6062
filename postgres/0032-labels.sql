-- Labels: what a device, a user, a session or an event turned out to be. Rows are only added: the
-- latest of a subject and external id counts, and a retraction is one more row.

create table labels (
  label_id text collate "C" primary key
    constraint label_id_has_its_form check (label_id ~ '^lbl_[A-Za-z0-9_-]{22}$'),
  -- Rises in the order of receipt within a tenant, whose calls add one after another.
  seq bigint generated always as identity,
  tenant_id text not null references tenants on delete cascade,
  subject_kind text not null
    constraint label_subject_is_known
    check (subject_kind in ('event', 'session', 'device', 'user')),
  -- No subject need be known: a label may come before its events or long after.
  subject_id text not null
    constraint label_subject_is_not_empty check (subject_id <> ''),
  label text not null
    constraint label_is_a_code check (label ~ '^[a-z][a-z0-9_-]{0,39}$'),
  occurred_at timestamptz(3) not null,
  -- Of a device or a user: sessions up to so many days before occurred_at are covered.
  covered_days smallint not null
    constraint covered_days_are_up_to_a_year check (covered_days between 1 and 365),
  amount numeric(16, 4)
    constraint label_amount_is_not_negative check (amount >= 0),
  currency text
    constraint currency_is_a_code check (currency ~ '^[A-Z]{3}$'),
  -- Empty when the sender named none.
  external_id text not null default '',
  note text,
  actor text not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  -- Replication to ClickHouse finds new rows by the transaction that wrote them.
  written_by_xid xid8 not null default pg_current_xact_id(),
  constraint amounts_have_a_currency check ((amount is null) = (currency is null)),
  constraint retractions_have_no_amount check (label <> 'retracted' or amount is null)
);
create index labels_by_time on labels (tenant_id, created_at desc, label_id desc);
create index labels_of_a_subject on labels (tenant_id, subject_kind, subject_id, seq);
create index labels_by_xid on labels (written_by_xid);
create trigger labels_name_own_actors before insert or update of actor on labels
  for each row execute function require_own_actor('actor');

-- How many labels each tenant has. The row is locked by whoever adds some, to the end of the
-- transaction, so seq rises in the order of commits.
create table label_totals (
  tenant_id text primary key references tenants on delete cascade,
  labels bigint not null
    constraint label_totals_are_not_negative check (labels >= 0)
);

alter table replication_removals
  drop constraint removed_kind_is_known,
  add constraint removed_kind_is_known check (kind in ('alert', 'delivery', 'label')) not valid;

create function record_removed_labels() returns trigger language plpgsql as $$
begin
  insert into replication_removals (kind, tenant_id, created_at, id)
  select 'label', tenant_id, created_at, label_id from removed on conflict do nothing;
  update label_totals as t set labels = t.labels - gone.n
  from (select tenant_id, count(*) as n from removed group by tenant_id) as gone
  where t.tenant_id = gone.tenant_id;
  return null;
end $$;
create trigger removed_labels_are_recorded after delete on labels
  referencing old table as removed for each statement execute function record_removed_labels();

-- The last round that copied labels. An older release beside this one completes rounds without
-- raising it, and forgets removals of labels; after such a round everything is copied again. No
-- label is there yet, so every completed round has copied all.
alter table replication_state add column labelled_round bigint not null default 0;
update replication_state set labelled_round = completed_round;
