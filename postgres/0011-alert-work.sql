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

-- A change of disposition of all alerts that a filter matches. Any console continues a job whose
-- lease has ended, after the last alert that was looked at.
create table bulk_jobs (
  job_id text primary key,
  tenant_id text not null references tenants on delete cascade,
  filter jsonb not null,
  disposition text not null
    constraint bulk_disposition_is_known
    check (disposition in ('OPEN', 'REVIEWED', 'FALSE_POSITIVE', 'CONFIRMED')),
  note text,
  actor text not null,
  state text not null default 'running'
    constraint bulk_state_is_known check (state in ('running', 'done', 'cancelled')),
  -- Alerts that matched when the job began; alerts looked at since; alerts whose disposition changed.
  total bigint not null,
  done bigint not null default 0,
  changed bigint not null default 0,
  -- Alerts up to this instant are meant, those raised later are not.
  until_at timestamptz(3) not null,
  after_at timestamptz(3),
  after_alert_id text collate "C",
  leased_until timestamptz not null default '-infinity',
  created_at timestamptz(3) not null default clock_timestamp(),
  ended_at timestamptz(3),
  constraint an_ended_bulk_job_has_ended_at check ((state = 'running') = (ended_at is null))
);
create index bulk_jobs_running on bulk_jobs (leased_until) where state = 'running';
create index bulk_jobs_of_a_tenant on bulk_jobs (tenant_id, created_at desc);
