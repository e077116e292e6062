-- Four eyes guard more effects, and keys know whether two persons made them.

alter table proposals drop constraint proposal_kind_is_known;
alter table proposals add constraint proposal_kind_is_known check (kind in
  ('policy', 'rotation', 'install_root', 'erasure', 'bulk', 'bulk_undo', 'four_eyes',
   'api_key', 'retention', 'wide_list_entry', 'suspension', 'shared_secret'));

-- Who approved the proposal to make the key; null of one that a single person made.
alter table api_keys add column approved_by text;

-- How much a key changed of late.
create index dispositions_by_keys on alert_dispositions (tenant_id, actor, at)
  where actor like 'api-key:%';
