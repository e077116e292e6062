-- The keys that sign verdict tokens, and what a tenant's clients are answered.

create table verdict_keys (
  -- The thumbprint of the public half (RFC 7638).
  kid text primary key,
  -- `next` is published and does not sign yet, `previous` is published until its last token has
  -- expired.
  state text not null constraint verdict_key_state_is_known
    check (state in ('next', 'current', 'previous')),
  -- The JSON Web Key that is published.
  public_jwk text not null,
  -- The private half; removed once no edge signs with it.
  sealed text,
  created_at timestamptz not null,
  current_since timestamptz,
  replaced_at timestamptz,
  -- Until when a previous key is published; null until every edge has the key after it.
  kept_until timestamptz,
  constraint verdict_keys_that_sign_have_a_private_half
    check (state = 'previous' or sealed is not null),
  constraint only_previous_verdict_keys_end
    check (state = 'previous' or (replaced_at is null and kept_until is null))
);
create unique index one_verdict_key_is_next on verdict_keys (state) where state = 'next';
create unique index one_verdict_key_is_current on verdict_keys (state) where state = 'current';

-- What a 200 of ingest tells the client: everything, or only what the public interface names.
alter table tenants add column ingest_answer text not null default 'full'
  constraint ingest_answer_is_known check (ingest_answer in ('full', 'interface'));
