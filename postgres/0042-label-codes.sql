-- The labels that a tenant declares beside those that every tenant has, with what they mean.
create table label_codes (
  tenant_id text not null references tenants on delete cascade,
  code text collate "C" not null
    constraint label_code_has_its_form check (code ~ '^[a-z][a-z0-9_-]{0,39}$'),
  means text not null
    constraint meaning_is_known check (means in ('fraud', 'legitimate')),
  created_at timestamptz(3) not null default clock_timestamp(),
  primary key (tenant_id, code)
);

-- What a declared code meant when the label was received; null of the others, and of labels that
-- the release before adds.
alter table labels add column code_means text
  constraint code_meaning_is_known check (code_means in ('fraud', 'legitimate'));

-- Codes that are in use go on as they are: as fraud.
insert into label_codes (tenant_id, code, means)
select distinct tenant_id, label, 'fraud' from labels
where label not in (
  'chargeback', 'account_takeover', 'promo_abuse', 'fraud', 'legitimate', 'retracted');
