-- How people work on alerts: who has one, what they noted, and changes of many alerts at once.

alter table alerts add column assignee text;
create index alerts_by_assignee on alerts (tenant_id, assignee, created_at desc, alert_id desc)
  where assignee is not null;
drop index alerts_newest_first;
create index alerts_newest_first on alerts (tenant_id, created_at desc, alert_id desc)
  include (disposition, action, risk_score, flags, changed_at, assignee);
drop index alerts_by_change;
create index alerts_by_change on alerts (tenant_id, changed_at)
  include (disposition, action, risk_score, flags, created_at, alert_id, assignee)
  where changed_at is not null;

create table alert_notes (
  note_id bigint generated always as identity primary key,
  tenant_id text not null,
  alert_id text collate "C" not null,
  author text not null,
  note text not null,
  at timestamptz(3) not null default clock_timestamp(),
  foreign key (tenant_id, alert_id) references alerts on delete cascade
);
create index notes_of_an_alert on alert_notes (tenant_id, alert_id, note_id);

-- Changes of assignees. A change by a bulk job names it, and the undo of a change names that change.
create table alert_assignments (
  assignment_id bigint generated always as identity primary key,
  tenant_id text not null,
  alert_id text collate "C" not null,
  from_assignee text,
  to_assignee text,
  actor text not null,
  at timestamptz(3) not null default clock_timestamp(),
  job_id text,
  undoes bigint,
  foreign key (tenant_id, alert_id) references alerts on delete cascade
);
create index assignments_of_an_alert on alert_assignments (tenant_id, alert_id, assignment_id);
create index assignments_of_a_job on alert_assignments (job_id, assignment_id)
  where job_id is not null;

alter table alert_dispositions
  add column job_id text,
  add column undoes bigint;
create index dispositions_of_a_job on alert_dispositions (job_id, disposition_id)
  where job_id is not null;

-- A change of many alerts: of all that a filter matches, of a selection, or of those that another
-- job changed, which go back to what they were. Any console continues a job whose lease has ended,
-- after the last alert that was looked at.
create table bulk_jobs (
  job_id text primary key,
  tenant_id text not null references tenants on delete cascade,
  sets text not null
    constraint bulk_sets_is_known check (sets in ('disposition', 'assignee')),
  filter jsonb,
  alert_ids text[],
  undo_of text,
  disposition text
    constraint bulk_disposition_is_known
    check (disposition in ('OPEN', 'REVIEWED', 'FALSE_POSITIVE', 'CONFIRMED')),
  -- Null takes assignees away.
  assignee text,
  note text,
  actor text not null,
  state text not null default 'running'
    constraint bulk_state_is_known check (state in ('running', 'done', 'cancelled')),
  -- Alerts that were meant when the job began; alerts looked at since; alerts that it changed;
  -- alerts that an undo left alone, because they were changed again after the job.
  total bigint not null,
  done bigint not null default 0,
  changed bigint not null default 0,
  kept bigint not null default 0,
  -- Of a filter: alerts up to this instant are meant, those raised later are not.
  until_at timestamptz(3),
  -- The place in the list of a filter; the last change that an undo looked at.
  after_at timestamptz(3),
  after_alert_id text collate "C",
  after_change_id bigint not null default 0,
  leased_until timestamptz not null default '-infinity',
  created_at timestamptz(3) not null default clock_timestamp(),
  ended_at timestamptz(3),
  constraint a_bulk_job_finds_alerts_in_one_way
    check (num_nonnulls(filter, alert_ids, undo_of) = 1),
  constraint a_filter_has_until_at check ((filter is null) = (until_at is null)),
  constraint a_bulk_disposition_is_named
    check ((sets = 'disposition' and undo_of is null) = (disposition is not null)),
  constraint an_ended_bulk_job_has_ended_at check ((state = 'running') = (ended_at is null))
);
create index bulk_jobs_running on bulk_jobs (leased_until) where state = 'running';
create index bulk_jobs_of_a_tenant on bulk_jobs (tenant_id, created_at desc);
-- A cancelled undo can be continued by another one.
create unique index a_bulk_job_is_undone_once on bulk_jobs (undo_of)
  where undo_of is not null and state <> 'cancelled';
