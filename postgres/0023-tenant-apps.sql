-- The apps of a tenant: evidence of a phone counts when it comes from one of them. The edges have a
-- projection of them, so every change raises the tenant's epoch.

create table tenant_apps (
  tenant_id text not null references tenants on delete cascade,
  platform text not null
    constraint app_platform_is_known check (platform in ('android', 'ios')),
  -- Package or bundle id.
  app_id text not null
    constraint app_id_is_not_empty check (app_id <> ''),
  -- SHA-256 of the certificates that may have signed it, in lower-case hex.
  signers text[] not null default '{}',
  -- The team of Apple's developer program.
  team text
    constraint app_team_has_its_form check (team ~ '^[A-Z0-9]{10}$'),
  -- The two keys of the Play Console, sealed for edges. No answer ever shows them.
  play_keys_sealed text
    constraint only_android_apps_have_play_keys
      check (play_keys_sealed is null or platform = 'android'),
  -- Whether keys of App Attest's development environment count.
  allows_development boolean not null default false
    constraint only_ios_apps_have_a_development_environment
      check (not allows_development or platform = 'ios'),
  created_at timestamptz not null default clock_timestamp(),
  primary key (tenant_id, platform, app_id),
  constraint android_apps_have_signers check ((platform = 'android') = (cardinality(signers) > 0)),
  constraint ios_apps_have_a_team check ((platform = 'ios') = (team is not null))
);
