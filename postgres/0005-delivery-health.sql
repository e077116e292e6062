-- What deliveries have shown of a webhook's health, shared by all delivery processes: how long it
-- has been failing, and until when its deliveries are held. And replays: a delivery that is sent
-- again keeps its id, bytes and attempts, and begins its schedule anew.

alter table webhooks
  -- The first failed attempt since the last success; null when the last one succeeded.
  add column failing_since timestamptz,
  -- Failed attempts since then, and what the last of them met.
  add column failed_attempts integer not null default 0,
  add column last_failure text,
  -- The breaker is open while this is set: nothing is claimed before it, and one delivery at a time
  -- after it, as a probe.
  add column held_until timestamptz,
  -- Probes that failed since it opened.
  add column failed_probes integer not null default 0,
  add constraint a_held_webhook_is_failing
    check (held_until is null or failing_since is not null);

-- A claim changes no indexed column, so it is an update within its page. A delivery that is being
-- sent stays `pending`; `sending` is what earlier releases wrote.
alter table deliveries
  add column claimed_until timestamptz,
  drop constraint only_a_claimed_delivery_is_sending,
  add constraint a_claimed_delivery_has_not_ended check (claimed_by is null or ended_at is null),
  -- Attempts made before the last replay: the schedule counts from here.
  add column attempts_before integer not null default 0,
  add constraint a_replay_follows_attempts check (attempts_before between 0 and attempts);
alter table deliveries set (fillfactor = 60);

-- Attempts go with their delivery, by a trigger instead of a foreign key: an attempt is only ever
-- inserted by the statement that updates its delivery, so checking each one again is for nothing,
-- and that was a quarter of what recording costs.
alter table delivery_attempts drop constraint delivery_attempts_delivery_id_fkey;
create function remove_attempts_of_removed_deliveries() returns trigger language plpgsql as $$
begin
  delete from delivery_attempts as a using removed where a.delivery_id = removed.delivery_id;
  return null;
end $$;
create trigger attempts_go_with_their_delivery after delete on deliveries
  referencing old table as removed
  for each statement execute function remove_attempts_of_removed_deliveries();
