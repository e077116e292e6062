-- Cases: the alerts of one phone, device or user, which are settled together. A case is open exactly
-- as long as one of its alerts is OPEN. What a case counts follows its alerts by triggers, in the
-- transaction of their change, whichever process or release makes it; only the raise adds by itself.

alter table alerts
  -- Null until a console has put an alert into a case that an older release raised.
  add column case_id text collate "C";
-- In the order of lists; it carries what a case counts. It finds alerts without a case as well.
create index alerts_by_case on alerts (tenant_id, case_id, created_at desc, alert_id desc)
  include (disposition, action, risk_score);

-- Rises with every change of a case of the tenant, under the lock of the row.
alter table alert_sequences add column case_seq bigint not null default 0
  constraint case_seq_is_not_negative check (case_seq >= 0);

create table case_rules (
  tenant_id text primary key references tenants on delete cascade,
  group_by text not null
    constraint grouped_by_is_known check (group_by in ('phone', 'device', 'user')),
  -- Days after its end in which a new alert opens a closed case again; 0: never.
  reopen_days integer not null
    constraint reopen_days_are_up_to_a_year check (reopen_days between 0 and 365),
  -- Hours after which an open alert is overdue.
  block_due_hours integer not null
    constraint block_is_due_within_a_year check (block_due_hours between 1 and 8760),
  review_due_hours integer not null
    constraint review_is_due_within_a_year check (review_due_hours between 1 and 8760)
);

create table cases (
  case_id text collate "C" primary key
    constraint case_id_has_its_form check (case_id ~ '^cas_[A-Za-z0-9_-]{22}$'),
  tenant_id text not null references tenants on delete cascade,
  subject_kind text not null
    constraint case_subject_is_known check (subject_kind in ('phone', 'device', 'user')),
  subject_id text not null,
  -- False of what was split off: new alerts of the subject fall into the case that it is from.
  takes_alerts boolean not null default true,
  -- The case that has the alerts of this one, and gets new ones of its subject.
  merged_into text collate "C" references cases on delete cascade,
  alert_count bigint not null default 0,
  open_count bigint not null default 0,
  state text not null
    generated always as (case when open_count > 0 then 'OPEN' else 'CLOSED' end) stored,
  -- The highest and the worst of all alerts; by flag, how many alerts have it.
  risk_score integer not null default 0,
  action text not null default 'REVIEW',
  flags jsonb not null default '{}',
  first_alert_at timestamptz(3) not null,
  latest_alert_at timestamptz(3) not null,
  -- Indexed in place of the column above: a raise that changes no index makes no new entries.
  latest_hour timestamptz not null
    generated always as (date_bin('1 hour', latest_alert_at, 'epoch')) stored,
  -- When the first of its open alerts is overdue, by these hours of the tenant's rules.
  due_at timestamptz(3) not null default 'infinity',
  block_due_hours integer not null,
  review_due_hours integer not null,
  -- When the last of its alerts was judged.
  closed_at timestamptz(3) default clock_timestamp(),
  snoozed_until timestamptz(3),
  assignee text,
  -- Who last set a disposition of one of its alerts.
  judged_by text,
  judged_at timestamptz(3),
  -- Whom it was handed out to, and until when nobody else gets it.
  leased_by text,
  leased_until timestamptz(3),
  -- Rises with every change of its alerts.
  version bigint not null default 1,
  constraint open_alerts_are_alerts check (open_count between 0 and alert_count),
  constraint an_open_case_is_due check ((open_count > 0) = (due_at < 'infinity')),
  constraint a_closed_case_has_an_end check ((open_count > 0) = (closed_at is null)),
  constraint only_open_cases_are_snoozed check (open_count > 0 or snoozed_until is null),
  constraint a_lease_has_both check ((leased_by is null) = (leased_until is null))
) with (fillfactor = 70);
create index cases_of_a_subject on cases (subject_id, subject_kind, tenant_id);
create index cases_merged on cases (merged_into) where merged_into is not null;
create index cases_by_latest on cases (tenant_id, latest_hour desc);
create index cases_by_due on cases (tenant_id, due_at, case_id) where closed_at is null;
create index cases_by_risk
  on cases (tenant_id, risk_score desc, first_alert_at desc, case_id desc)
  where closed_at is null;

-- Which cases each change was of, for a minute: streams tell pages.
create table case_changes (
  tenant_id text not null,
  -- `case_seq` of the change.
  seq bigint not null,
  -- Null when they are too many to name.
  case_ids text[],
  at timestamptz not null default clock_timestamp(),
  primary key (tenant_id, seq)
);
create index case_changes_by_age on case_changes (at);

create table case_notes (
  note_id bigint generated always as identity primary key,
  case_id text collate "C" not null references cases on delete cascade,
  author text not null,
  note text not null,
  at timestamptz(3) not null default clock_timestamp()
);
create index notes_of_a_case on case_notes (case_id, note_id);

create table case_events (
  event_id bigint generated always as identity primary key,
  case_id text collate "C" not null references cases on delete cascade,
  kind text not null constraint case_event_is_known
    check (kind in ('reopened', 'judged', 'snoozed', 'woken', 'assigned', 'merged', 'split')),
  actor text not null,
  details jsonb not null default '{}',
  at timestamptz(3) not null default clock_timestamp()
);
create index events_of_a_case on case_events (case_id, event_id);
create trigger case_events_name_own_actors before insert or update on case_events
  for each row execute function require_own_actor('actor');

-- Who has a case open, as their pages last told. An operator's old rows go with the next one.
create table case_presence (
  case_id text collate "C" not null references cases on delete cascade,
  operator text not null,
  since timestamptz(3) not null default clock_timestamp(),
  seen_at timestamptz(3) not null default clock_timestamp(),
  primary key (case_id, operator)
);
create index presence_of_an_operator on case_presence (operator);

-- Filters of pages under a name.
create table saved_views (
  view_id text primary key
    constraint view_id_has_its_form check (view_id ~ '^viw_[A-Za-z0-9_-]{22}$'),
  tenant_id text not null references tenants on delete cascade,
  kind text not null
    constraint view_kind_is_known check (kind in ('cases', 'alerts', 'events', 'sql')),
  name text not null,
  query jsonb not null,
  shared boolean not null,
  owner text not null,
  updated_at timestamptz(3) not null default clock_timestamp()
);
create unique index names_of_own_views_are_unique on saved_views (tenant_id, kind, owner, name);

-- Brings what cases count to what their alerts are, and removes cases that have no alerts left. The
-- caller holds the lock of the tenant's alerts.
-- @param moved whether alerts came to the cases or left them
-- @param at when what closes a case happened
create function refresh_cases(of_tenant text, ids text[], moved boolean, at timestamptz)
  returns void language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  seq bigint;
begin
  update public.alert_sequences set case_seq = case_seq + 1
  where tenant_id = of_tenant returning case_seq into seq;
  if seq is not null then
    insert into public.case_changes (tenant_id, seq, case_ids) values (of_tenant, seq, ids);
  end if;
  update public.cases as c set
    alert_count = present.alert_count,
    open_count = present.open_count,
    risk_score = coalesce(present.risk_score, c.risk_score),
    action = coalesce(present.action, c.action),
    first_alert_at = coalesce(present.first_at, c.first_alert_at),
    latest_alert_at = coalesce(present.latest_at, c.latest_alert_at),
    due_at = coalesce(
      least(present.block_at + c.block_due_hours * interval '1 hour',
        present.review_at + c.review_due_hours * interval '1 hour'),
      'infinity'),
    closed_at = case
      when present.open_count > 0 then null
      when moved then greatest(c.closed_at, at)
      else coalesce(c.closed_at, at)
    end,
    snoozed_until = case when present.open_count > 0 then c.snoozed_until end,
    leased_by = case when present.open_count > 0 then c.leased_by end,
    leased_until = case when present.open_count > 0 then c.leased_until end,
    version = c.version + 1
  from unnest(ids) as wanted (id)
  cross join lateral (
    select count(*) as alert_count,
      count(*) filter (where disposition = 'OPEN') as open_count,
      min(created_at) filter (where disposition = 'OPEN' and a.action = 'BLOCK') as block_at,
      min(created_at) filter (where disposition = 'OPEN' and a.action = 'REVIEW') as review_at,
      max(a.risk_score) as risk_score, min(a.action) as action,
      min(created_at) as first_at, max(created_at) as latest_at
    from public.alerts as a where a.tenant_id = of_tenant and a.case_id = wanted.id
  ) as present
  where c.case_id = wanted.id;
  if moved then
    update public.cases as c set flags = (
      select coalesce(jsonb_object_agg(code, alerts), '{}') from (
        select code, count(*) as alerts from (
          select distinct a.alert_id, code
          from public.alerts as a
          cross join lateral jsonb_array_elements_text(a.flags) as found (code)
          where a.tenant_id = of_tenant and a.case_id = c.case_id
        ) as once group by code
      ) as counted)
    where c.case_id = any(ids);
    delete from public.cases where case_id = any(ids) and alert_count = 0 and merged_into is null;
  end if;
end $$;
revoke execute on function refresh_cases(text, text[], boolean, timestamptz) from public;

create function follow_changed_alerts() returns trigger
  language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  touched record;
begin
  for touched in
    select n.tenant_id, array_agg(distinct one.id) as ids,
      bool_or(n.case_id is distinct from o.case_id) as moved,
      coalesce(max(n.changed_at), clock_timestamp()) as at
    from new_alerts as n
    join old_alerts as o on o.tenant_id = n.tenant_id and o.alert_id = n.alert_id
    cross join lateral (values (o.case_id), (n.case_id)) as one (id)
    where one.id is not null
      and (n.disposition <> o.disposition or n.case_id is distinct from o.case_id)
    group by n.tenant_id order by n.tenant_id
  loop
    perform public.refresh_cases(touched.tenant_id, touched.ids, touched.moved, touched.at);
  end loop;
  return null;
end $$;
create trigger cases_follow_changed_alerts after update on alerts
  referencing old table as old_alerts new table as new_alerts
  for each statement execute function follow_changed_alerts();

create function follow_removed_alerts() returns trigger
  language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  touched record;
begin
  for touched in
    select tenant_id, array_agg(distinct case_id) as ids
    from old_alerts where case_id is not null group by tenant_id order by tenant_id
  loop
    perform public.refresh_cases(touched.tenant_id, touched.ids, true, clock_timestamp());
  end loop;
  return null;
end $$;
create trigger cases_follow_removed_alerts after delete on alerts
  referencing old table as old_alerts
  for each statement execute function follow_removed_alerts();

create function note_judges_of_cases() returns trigger
  language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  update public.cases as c set judged_by = latest.actor, judged_at = latest.at
  from (
    select distinct on (a.case_id) a.case_id, d.actor, d.at
    from added as d join public.alerts as a using (tenant_id, alert_id)
    where d.to_disposition <> 'OPEN' and a.case_id is not null
    order by a.case_id, d.disposition_id desc
  ) as latest
  where c.case_id = latest.case_id;
  return null;
end $$;
create trigger cases_name_who_judged after insert on alert_dispositions
  referencing new table as added
  for each statement execute function note_judges_of_cases();
