-- Drafts of policies, why versions were published, and four eyes: what one administrator proposes
-- and another one approves.

alter table tenant_policies
  -- Why it was published; null of versions whose author gave none.
  add column reason text
    constraint version_reason_is_not_empty check (reason <> ''),
  -- Who approved it; null where no approval was asked for.
  add column approved_by text
    constraint versions_are_approved_by_another check (approved_by <> created_by);

create table policy_drafts (
  draft_id text collate "C" primary key,
  tenant_id text not null references tenants on delete cascade,
  -- As it was typed: it need not be a valid policy, nor JSON.
  text text not null,
  comment text not null default '',
  base_version integer not null,
  -- Raised by every change: one that began from an older revision is refused.
  revision integer not null default 1
    constraint draft_revisions_start_at_one check (revision >= 1),
  created_by text not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  updated_by text not null,
  updated_at timestamptz(3) not null default clock_timestamp(),
  constraint drafts_begin_from_a_version foreign key (tenant_id, base_version)
    references tenant_policies (tenant_id, version) on delete cascade
);
create index policy_drafts_by_time on policy_drafts (tenant_id, created_at desc, draft_id desc);

-- The latest backtest of a policy, in short: reviewers see what its author saw.
create table policy_backtests (
  tenant_id text not null references tenants on delete cascade,
  policy_hash text not null,
  at timestamptz(3) not null default clock_timestamp(),
  summary jsonb not null,
  primary key (tenant_id, policy_hash)
);
create index policy_backtests_by_time on policy_backtests (at);

-- Tenants that want four eyes; without a row a tenant does not.
create table four_eyes (
  tenant_id text primary key references tenants on delete cascade,
  enabled boolean not null,
  -- A bulk change of more alerts needs an approval.
  bulk_above integer not null
    constraint bulk_above_is_not_negative check (bulk_above >= 0)
);

create table proposals (
  proposal_id text collate "C" primary key
    constraint proposal_id_has_its_form check (proposal_id ~ '^prp_[0-9a-f-]{36}$'),
  tenant_id text not null references tenants on delete cascade,
  kind text not null
    constraint proposal_kind_is_known check (kind in
      ('policy', 'rotation', 'install_root', 'erasure', 'bulk', 'bulk_undo', 'four_eyes')),
  -- json, not jsonb: the hash of a policy covers the order of its keys.
  parameters json not null,
  -- What it was proposed over; it is void once that has changed.
  base jsonb not null,
  reason text not null
    constraint proposals_have_a_reason check (reason <> ''),
  author text not null,
  state text not null default 'open'
    constraint proposal_state_is_known check (state in
      ('open', 'approved', 'rejected', 'withdrawn', 'void', 'failed')),
  -- The device or user of an erasure: its id is sealed while it is open.
  subject_kind text
    constraint proposal_subject_is_known check (subject_kind in ('device', 'user')),
  subject_sha256 text,
  sealed text,
  created_at timestamptz(3) not null default clock_timestamp(),
  expires_at timestamptz(3) not null,
  ended_at timestamptz(3),
  ended_by text,
  -- Why it was rejected, is void or failed.
  note text,
  constraint open_proposals_have_no_end check ((state = 'open') = (ended_at is null)),
  constraint ended_proposals_say_by_whom check ((ended_at is null) = (ended_by is null)),
  constraint ids_of_ended_proposals_are_forgotten check (ended_at is null or sealed is null),
  constraint nobody_approves_their_own check (state <> 'approved' or ended_by <> author),
  constraint proposal_subjects_are_of_erasures
    check ((kind = 'erasure') = (subject_kind is not null)
      and (subject_kind is null) = (subject_sha256 is null))
);
create index proposals_by_time on proposals (tenant_id, created_at desc, proposal_id desc);
create index open_proposals on proposals (tenant_id, kind) where state = 'open';
create index proposals_by_end on proposals (coalesce(ended_at, expires_at));
create trigger proposals_name_own_actors before insert or update of author on proposals
  for each row execute function require_own_actor('author');
create trigger proposals_are_ended_by_own_actors before update of ended_by on proposals
  for each row execute function require_own_actor('ended_by');
