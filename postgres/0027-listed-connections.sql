-- Allow and deny lists of networks, of their operators and of countries.

alter table list_entries
  drop constraint listed_kind_is_known,
  add constraint listed_kind_is_known
    check (kind in ('device', 'user', 'network', 'asn', 'country')),
  -- Each in its one spelling.
  add constraint listed_network_is_a_cidr
    check (kind <> 'network' or id ~ '^[0-9a-f.:]+/[0-9]{1,3}$'),
  add constraint listed_asn_is_a_number check (kind <> 'asn' or id ~ '^[1-9][0-9]{0,9}$'),
  add constraint listed_country_is_a_code check (kind <> 'country' or id ~ '^[A-Z]{2}$'),
  -- A connection has none: the edges get all of a tenant's together, and a console of an earlier
  -- release, which knows shards alone, projects none of them.
  alter column shard drop not null,
  add constraint ids_alone_have_a_shard
    check ((kind in ('device', 'user')) = (shard is not null));
create index list_entries_of_connections on list_entries (tenant_id) where shard is null;

-- The versions of these lists, as `list_shards` has those of shards.
create table connection_lists (
  tenant_id text primary key references tenants on delete cascade,
  version bigint not null default 1
    constraint connection_versions_start_at_one check (version >= 1),
  projected_version bigint not null default 0
    constraint only_a_connection_version_is_projected
      check (projected_version between 0 and version)
);
create index connection_lists_to_project on connection_lists (tenant_id)
  where projected_version < version;
