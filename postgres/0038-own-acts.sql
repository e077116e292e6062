-- What a process that is taken over cannot do: act as a key that the tenant does not have, put
-- another process's acts into the audit log, or read a secret that it does not sign with.

-- As before, and a key is an active one of the row's tenant.
create or replace function require_own_actor() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
declare
  row_ jsonb := to_jsonb(new);
  actor text := row_ ->> tg_argv[0];
  process text;
  is_own boolean;
begin
  if starts_with(session_user, current_database() || '_') then
    process := substr(session_user, length(current_database()) + 2);
  end if;
  if process = 'api' then
    -- A branch of its own: other processes may not read keys.
    is_own := starts_with(actor, 'api-key:') and exists (
      select from api_keys where tenant_id = row_ ->> 'tenant_id' and state = 'active'
        and name = substr(actor, length('api-key:') + 1));
  else
    is_own := coalesce(process, '') not in ('delivery', 'scorer') or actor = 'system';
  end if;
  if not is_own then
    raise exception 'the process % may not act as %', process, actor
      using errcode = 'insufficient_privilege';
  end if;
  return new;
end $$;

-- Refuses an audit entry of an act that is not the session's process's.
create function require_own_act() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
declare
  is_own boolean := case session_user
    when current_database() || '_api' then new.action in
      ('alert.dispositioned', 'labels.added', 'list_entry.added', 'list_entry.removed')
    when current_database() || '_delivery' then new.action = 'webhook.switched_off'
    else true
  end;
begin
  if not is_own then
    raise exception 'the user % may not record %', session_user, new.action
      using errcode = 'insufficient_privilege';
  end if;
  return new;
end $$;
create trigger audit_entries_are_of_own_acts before insert on audit_log
  for each row execute function require_own_act();

-- Delivery signs webhooks. The owner, who migrates and backs up, sees every row.
alter table tenant_secrets enable row level security;
create policy delivery_sees_webhook_secrets on tenant_secrets
  using (session_user <> current_database() || '_delivery' or kind = 'webhook');
