-- The form of sealed texts and of the tenant directory that is in force. `old`: under MASTER_KEY.
-- `switching`: the new one is written and both are read. `new`: a key for each kind of secret, and
-- signatures in the directory. An installation that has tenants already begins with the old one,
-- which `di secrets rewrap` ends.
create table key_form (
  singleton boolean primary key default true
    constraint key_form_has_one_row check (singleton),
  form text not null
    constraint key_form_is_known check (form in ('old', 'switching', 'new'))
);
insert into key_form (form)
select case
  when exists (select from tenants) or exists (select from operators where totp_sealed is not null)
    or exists (select from erasures where sealed is not null) then 'old'
  else 'new'
end;

-- Erasures that only the list of removals in JetStream knew, and that an operator confirmed after
-- Postgres had been put back to an earlier state. Their subjects are searched and erased again.
create table recovered_erasures (
  tenant_id text not null references tenants on delete cascade,
  kind text not null constraint recovered_erasures_kind_is_known check (kind in ('device', 'user')),
  subject_sha256 text not null,
  -- Of the erasure: what was accepted before is gone.
  started_at timestamptz not null,
  recovered_by text not null,
  recovered_at timestamptz not null default clock_timestamp(),
  -- When the stores were searched for the subject; null until then.
  searched_at timestamptz,
  primary key (tenant_id, kind, subject_sha256)
);
