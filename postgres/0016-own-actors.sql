-- Rows that name who did something. Each process may name only those whose acts it carries out: the
-- API its keys, delivery the service itself, the console its operators. A process that is taken over
-- cannot put its acts under another name.

-- The database user that wrote an audit entry; null in entries from before.
alter table audit_log add column written_by text;

-- Refuses a row whose actor the session's process may not name. Processes have a role each, named
-- `<database>_<process>`; other users, such as the owner, may name anyone.
-- @param 0 the column of the actor
create function require_own_actor() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
declare
  actor text := to_jsonb(new) ->> tg_argv[0];
  process text;
  is_own boolean;
begin
  if starts_with(session_user, current_database() || '_') then
    process := substr(session_user, length(current_database()) + 2);
  end if;
  is_own := case process
    when 'api' then starts_with(actor, 'api-key:')
    when 'delivery' then actor = 'system'
    when 'scorer' then actor = 'system'
    else true
  end;
  if not is_own then
    raise exception 'the process % may not act as %', process, actor
      using errcode = 'insufficient_privilege';
  end if;
  return new;
end $$;

-- Stamps the database user on an audit entry, whatever was given.
create function stamp_audit_writer() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
begin
  new.written_by := session_user;
  return new;
end $$;

create trigger audit_entries_name_own_actors before insert on audit_log
  for each row execute function require_own_actor('actor');
create trigger audit_entries_have_a_writer before insert on audit_log
  for each row execute function stamp_audit_writer();
create trigger dispositions_name_own_actors before insert or update on alert_dispositions
  for each row execute function require_own_actor('actor');
create trigger list_entries_name_own_actors before insert or update of created_by on list_entries
  for each row execute function require_own_actor('created_by');
