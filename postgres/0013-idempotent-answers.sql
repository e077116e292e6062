-- Answers to calls with an `Idempotency-Key`, written in the transaction of what the call changed.

create table idempotent_answers (
  -- Whose key it is: keys of two callers never meet. Of an operator there is no tenant.
  tenant_id text not null,
  actor text not null,
  idempotency_key text not null
    constraint idempotency_key_is_short check (length(idempotency_key) between 1 and 255),
  -- SHA-256 of method, address, body and what the caller may see.
  request_sha256 bytea not null
    constraint request_sha256_has_32_bytes check (octet_length(request_sha256) = 32),
  -- The JSON of the answer. It holds no secret: calls that answer secrets refuse the header.
  answer text not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (tenant_id, actor, idempotency_key)
);
create index idempotent_answers_by_age on idempotent_answers (created_at);
