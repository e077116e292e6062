-- Allow and deny lists of devices and users. The edges have a projection of them, in shards: a
-- console writes every shard whose version is not projected yet.

create table list_entries (
  entry_id text primary key
    constraint entry_id_has_its_form check (entry_id ~ '^lst_[A-Za-z0-9_-]{22}$'),
  tenant_id text not null references tenants on delete cascade,
  list text not null
    constraint list_is_allow_or_deny check (list in ('allow', 'deny')),
  kind text not null
    constraint listed_kind_is_known check (kind in ('device', 'user')),
  -- The device_id, or the user_id or account_id.
  id text not null
    constraint listed_id_is_not_empty check (id <> ''),
  -- A code such as chargeback.
  reason text not null
    constraint list_reason_is_a_code check (reason ~ '^[a-z0-9][a-z0-9_-]{0,39}$'),
  -- Null never expires.
  expires_at timestamptz,
  created_by text not null,
  created_at timestamptz not null default clock_timestamp(),
  shard smallint not null
    constraint shard_is_one_of_sixteen check (shard between 0 and 15),
  constraint an_id_is_once_on_a_list unique (tenant_id, kind, id, list)
);
create index list_entries_of_a_shard on list_entries (tenant_id, shard);
create index list_entries_that_expire on list_entries (expires_at) where expires_at is not null;

-- A row stays when its shard is empty, so that its version never falls.
create table list_shards (
  tenant_id text not null references tenants on delete cascade,
  shard smallint not null
    constraint shard_is_one_of_sixteen check (shard between 0 and 15),
  -- Rises with every change of an entry. One version names one content.
  version bigint not null default 1
    constraint shard_versions_start_at_one check (version >= 1),
  -- The newest version that a console wrote for the edges.
  projected_version bigint not null default 0
    constraint only_a_version_is_projected check (projected_version between 0 and version),
  primary key (tenant_id, shard)
);
create index list_shards_to_project on list_shards (tenant_id, shard)
  where projected_version < version;
