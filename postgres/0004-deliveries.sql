-- Webhooks and their deliveries. The row is the truth and the JetStream message only a hint: a
-- delivery is claimed, attempted, and rescheduled or ended. Its body is the bytes that every attempt
-- sends. Deliveries and attempts are partitioned by the month in which the delivery was created.

create table webhooks (
  tenant_id text primary key references tenants on delete cascade,
  url text,
  state text not null default 'off'
    constraint webhook_state_is_known check (state in ('on', 'off', 'paused')),
  -- gone: the receiver answered 410. failing: every attempt failed for days.
  off_reason text
    constraint off_reason_is_known check (off_reason in ('operator', 'gone', 'failing')),
  changed_at timestamptz not null default now(),
  -- Health, shared by all delivery processes. The first failed attempt since the last success; null
  -- when the last attempt succeeded.
  failing_since timestamptz,
  failed_attempts integer not null default 0
    constraint failed_attempts_are_not_negative check (failed_attempts >= 0),
  last_failure text,
  -- The circuit is open while this is set. Until then nothing is claimed; afterwards it is half-open
  -- and one delivery at a time is a probe.
  circuit_open_until timestamptz,
  -- Probes that failed since the circuit opened.
  failed_probes integer not null default 0
    constraint failed_probes_are_not_negative check (failed_probes >= 0),
  constraint a_webhook_that_is_on_has_a_url check (state <> 'on' or url is not null),
  constraint an_open_circuit_is_failing
    check (circuit_open_until is null or failing_since is not null)
);

-- One row: how long a delivery process may sign with a webhook secret that it has read. A rotation
-- waits as long, so the old secret is dead when it returns.
create table webhook_secret_lease (
  singleton boolean primary key default true
    constraint webhook_secret_lease_has_one_row check (singleton),
  lease_ms integer not null constraint lease_is_positive check (lease_ms > 0),
  -- Secrets read after this instant have the default lease again.
  extended_until timestamptz not null
);
insert into webhook_secret_lease (lease_ms, extended_until) values (1, '-infinity');

create table deliveries (
  tenant_id text not null references tenants on delete cascade,
  -- Unique: it follows from its alert's id and is created under the lock of the tenant's alerts.
  delivery_id text not null,
  -- Null for a test. Ordered as in `alerts`, so that an index finds the alert's delivery.
  alert_id text collate "C",
  event text not null default 'risk.alert'
    constraint delivery_event_is_known check (event in ('risk.alert', 'webhook.test')),
  body bytea not null,
  -- Continues the trace of the event that raised the alert; null when it is not traced.
  traceparent text,
  -- A delivery that is being sent stays pending: claimed_by says that it is.
  state text not null default 'pending'
    constraint delivery_state_is_known
    check (state in ('pending', 'delivered', 'failed', 'skipped')),
  attempts integer not null default 0,
  -- Attempts before the last replay: the retry schedule counts from here.
  attempts_before_replay integer not null default 0,
  due_at timestamptz not null default now(),
  claimed_by text,
  claimed_until timestamptz,
  created_at timestamptz not null default now(),
  ended_at timestamptz,
  -- Why it ended undelivered.
  reason text
    constraint delivery_reason_is_known check (reason in ('no_webhook', 'exhausted', 'gone')),
  constraint a_claimed_delivery_has_not_ended check (claimed_by is null or ended_at is null),
  constraint an_ended_delivery_has_ended_at
    check ((state in ('delivered', 'failed', 'skipped')) = (ended_at is not null)),
  constraint a_replay_follows_attempts check (attempts_before_replay between 0 and attempts),
  primary key (delivery_id, created_at)
) partition by range (created_at);
-- Every tenant has two queues, first attempts and retries, and each is claimed from its own front,
-- so a claim never scans the backlog of another tenant.
create index deliveries_due on deliveries (tenant_id, (attempts > 0), due_at)
  where state = 'pending';
create index deliveries_of_a_tenant on deliveries (tenant_id, created_at desc, delivery_id desc);
create index deliveries_of_an_alert on deliveries (tenant_id, alert_id);
-- Retention removes the oldest ended deliveries.
create index deliveries_ended_oldest_first on deliveries (tenant_id, ended_at)
  where ended_at is not null;

-- No foreign key: only the statement that updates a delivery inserts its attempts, and checking each
-- of them costs a quarter of recording. A trigger removes them with their delivery.
create table delivery_attempts (
  delivery_id text not null,
  -- When the delivery was created: its attempts are in the partition of the same month.
  delivery_created_at timestamptz not null,
  attempt integer not null,
  at timestamptz not null,
  duration_ms integer not null,
  -- The receiver's status; null without a response.
  status integer,
  -- Null on success.
  error_kind text
    constraint error_kind_is_known
    check (error_kind in ('status', 'dns', 'refused_address', 'connect', 'tls', 'timeout', 'reset',
      'protocol')),
  error text,
  address text,
  -- The first 4 KiB of the response.
  answer text,
  -- Replication to ClickHouse finds attempts by the transaction that wrote them.
  written_by_xid xid8 not null default pg_current_xact_id(),
  primary key (delivery_id, delivery_created_at, attempt)
) partition by range (delivery_created_at);
create index attempts_by_xid on delivery_attempts (written_by_xid);

create function remove_attempts_of_removed_deliveries() returns trigger language plpgsql as $$
begin
  delete from delivery_attempts as a using removed
  where a.delivery_id = removed.delivery_id and a.delivery_created_at = removed.created_at;
  return null;
end $$;
create trigger attempts_go_with_their_delivery after delete on deliveries
  referencing old table as removed
  for each statement execute function remove_attempts_of_removed_deliveries();

-- The partitions. Nothing is lost when a month has none: its rows are then in the default ones.
-- A claim changes no indexed column, so with room in its page it is an update within it. Each attempt
-- leaves two dead row versions at the front of the queues, so they are vacuumed early.

create table deliveries_default partition of deliveries default
  with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create table delivery_attempts_default partition of delivery_attempts default;

-- The first instant of a month, in UTC.
create function delivery_month_start(month date) returns timestamptz language sql immutable as
  $$ select date_trunc('month', month::timestamp) at time zone 'UTC' $$;

-- Creates the partitions of a month if they are missing. A month with rows in the default partition
-- gets none.
create function create_delivery_month(month date) returns void
  language plpgsql set search_path = pg_catalog, public, pg_temp as $$
declare
  suffix text := to_char(month, 'YYYY_MM');
  bounds text := format('for values from (%L) to (%L)', delivery_month_start(month),
    delivery_month_start((month + interval '1 month')::date));
begin
  if to_regclass('public.deliveries_' || suffix) is not null then return; end if;
  execute format('create table public.deliveries_%s partition of public.deliveries %s '
    || 'with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, '
    || 'autovacuum_vacuum_threshold = 500)', suffix, bounds);
  execute format('create table public.delivery_attempts_%s '
    || 'partition of public.delivery_attempts %s', suffix, bounds);
exception when check_violation then return;
end $$;
revoke execute on function create_delivery_month(date) from public;

-- Creates the partitions of this month and the next; the console calls it. It runs as the owner.
create function create_delivery_months() returns void
  language plpgsql security definer set search_path = pg_catalog, public, pg_temp
  -- Claims wait behind a lock that waits. The next call tries again, weeks before the month begins.
  set lock_timeout = '100ms' as $$
declare
  today date := now() at time zone 'UTC';
begin
  perform create_delivery_month(today);
  perform create_delivery_month((date_trunc('month', today) + interval '1 month')::date);
end $$;
revoke execute on function create_delivery_months() from public;
select create_delivery_months();
