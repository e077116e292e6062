-- Webhooks of tenants that want to know when the disposition of an alert changes, and webhook secrets
-- that still sign beside a new one.

alter table webhooks
  -- Which events are delivered. An alert that is raised always is.
  add column events text[] not null default '{risk.alert}'
    constraint webhook_events_are_known check (events <@ '{risk.alert,alert.updated}')
    constraint raised_alerts_are_delivered check (events @> '{risk.alert}');

-- Every row fits the wider rule, so none is read.
alter table deliveries
  drop constraint delivery_event_is_known,
  add constraint delivery_event_is_known
    check (event in ('risk.alert', 'alert.updated', 'webhook.test')) not valid;

-- Replication finds new alerts with their deliveries by seq. An update comes later.
drop trigger deliveries_without_a_new_alert_are_recorded on deliveries;
create trigger deliveries_without_a_new_alert_are_recorded
  after insert on deliveries
  for each row when (
    new.alert_id is null or new.due_at <> new.created_at or new.event = 'alert.updated')
  execute function record_delivery_change();

-- The api may create deliveries of changes that it makes itself, and no others.
create function require_own_update() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
begin
  if new.event <> 'alert.updated' or not exists (
    select from public.alert_dispositions as d
    where d.tenant_id = new.tenant_id and d.alert_id = new.alert_id
      and d.written_by_xid = pg_current_xact_id())
  then
    raise exception 'the process api may deliver its own changes of dispositions only'
      using errcode = 'insufficient_privilege';
  end if;
  return new;
end $$;
create trigger deliveries_of_the_api_are_its_own_updates before insert on deliveries
  for each row when (session_user = current_database() || '_api')
  execute function require_own_update();

-- A retired webhook secret, until this instant: it signs beside the new one, in `webhook-signature`.
alter table tenant_secrets add column signs_until timestamptz
  constraint only_retired_webhook_secrets_sign_on
    check (signs_until is null or (kind = 'webhook' and state = 'retired' and sealed is not null));
create unique index one_retired_webhook_secret_signs_per_tenant
  on tenant_secrets (tenant_id) where signs_until is not null;
