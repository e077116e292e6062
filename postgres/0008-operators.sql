-- People who sign in to the console: accounts, sessions, recovery codes and invitations. Passwords
-- are argon2id; tokens and recovery codes are random and stored as SHA-256; TOTP secrets are sealed
-- under MASTER_KEY.

create table operators (
  operator_id text primary key
    constraint operator_id_is_ours check (operator_id ~ '^opr_[A-Za-z0-9_-]{22}$'),
  email text not null
    constraint email_is_lower_case check (email = lower(email))
    constraint one_operator_per_email unique,
  name text not null,
  role text not null
    constraint operator_role_is_known check (role in ('viewer', 'analyst', 'engineer', 'admin')),
  -- Tenants that the operator may see; null means all.
  tenants text[]
    constraint operator_tenants_are_named check (array_position(tenants, null) is null),
  -- argon2id in the PHC string format; null for one who signs in through the identity provider alone.
  password_hash text
    constraint password_hash_is_argon2id check (password_hash like '$argon2id$%'),
  -- Who this is at the identity provider, from the first sign-in through it on.
  oidc_issuer text,
  oidc_subject text,
  totp_sealed text,
  totp_enabled boolean not null default false,
  -- The last 30-second step whose code was used: a code works once.
  totp_last_step bigint,
  created_at timestamptz not null,
  created_by text not null,
  last_signed_in_at timestamptz,
  disabled_at timestamptz,
  constraint enabled_totp_has_a_secret check (not totp_enabled or totp_sealed is not null),
  constraint a_subject_is_of_an_issuer check ((oidc_issuer is null) = (oidc_subject is null)),
  constraint an_operator_can_sign_in check (num_nonnulls(password_hash, oidc_subject) >= 1),
  constraint one_operator_per_subject unique (oidc_issuer, oidc_subject)
);

create table operator_recovery_codes (
  operator_id text not null references operators on delete cascade,
  code_hash bytea not null
    constraint code_hash_is_sha256 check (octet_length(code_hash) = 32),
  used_at timestamptz,
  primary key (operator_id, code_hash)
);

-- A row is a session in use: ending it removes the row. A new token replaces the hash of the old.
create table operator_sessions (
  session_id text primary key
    constraint session_id_is_ours check (session_id ~ '^ses_[A-Za-z0-9_-]{22}$'),
  token_hash bytea not null
    constraint token_hash_is_sha256 check (octet_length(token_hash) = 32)
    constraint one_session_per_token unique,
  operator_id text not null references operators on delete cascade,
  created_at timestamptz not null,
  last_used_at timestamptz not null,
  step_up_until timestamptz,
  -- What began it: a password, the identity provider, or a link of an invitation or a reset.
  signed_in_by text not null
    constraint way_to_sign_in_is_known check (signed_in_by in ('password', 'oidc', 'link')),
  -- Where the sign-in came from, for the owner to recognise.
  address text not null,
  user_agent text not null,
  constraint a_session_is_used_after_it_began check (last_used_at >= created_at)
);
create index sessions_of_an_operator on operator_sessions (operator_id, created_at desc);
create index sessions_by_age on operator_sessions (created_at);

create table operator_invitations (
  invitation_id text primary key
    constraint invitation_id_is_ours check (invitation_id ~ '^inv_[A-Za-z0-9_-]{22}$'),
  token_hash bytea not null
    constraint invitation_hash_is_sha256 check (octet_length(token_hash) = 32)
    constraint one_invitation_per_token unique,
  -- The operator who is to choose a new password; null for a new account.
  operator_id text references operators on delete cascade,
  email text not null
    constraint invited_email_is_lower_case check (email = lower(email)),
  name text not null,
  role text not null
    constraint invited_role_is_known check (role in ('viewer', 'analyst', 'engineer', 'admin')),
  tenants text[]
    constraint invited_tenants_are_named check (array_position(tenants, null) is null),
  created_at timestamptz not null,
  created_by text not null,
  expires_at timestamptz not null,
  accepted_at timestamptz,
  revoked_at timestamptz,
  constraint an_invitation_ends_once check (num_nulls(accepted_at, revoked_at) >= 1)
);
create unique index one_open_invitation_per_email
  on operator_invitations (email) where accepted_at is null and revoked_at is null;
create index invitations_by_age on operator_invitations (created_at desc, invitation_id desc);
