-- One row: when the next retention round is due. Any number of consoles take turns by it; each round
-- removes what is older than the retention days of its tenant.
create table retention_rounds (
  singleton boolean primary key default true
    constraint retention_rounds_has_one_row check (singleton),
  due_at timestamptz not null default now()
);
insert into retention_rounds default values;

-- Drops the oldest month of deliveries in which every delivery has expired; the console calls it until
-- nothing is left. It runs as the owner. It checks again under the lock, so nothing is lost that was
-- replayed meanwhile. A tenant that is not named keeps all its deliveries.
-- @param cutoffs by tenant: what ended before has expired; null: nothing has
-- @returns the first day of the month; null when there is none
create function drop_expired_delivery_month(tenant_ids text[], cutoffs timestamptz[]) returns date
  language plpgsql security definer set search_path = pg_catalog, public, pg_temp
  -- Claims wait behind a lock that waits. The next round of retention tries again.
  set lock_timeout = '100ms' as $$
declare
  month date;
  suffix text;
begin
  for month, suffix in
    select to_date(parts[1], 'YYYY_MM'), parts[1]
    from pg_inherits
    join pg_class on pg_class.oid = inhrelid
    cross join regexp_match(relname, '^deliveries_(\d{4}_\d{2})$') as parts
    where inhparent = 'public.deliveries'::regclass and parts is not null
    order by 1
  loop
    -- No transaction that creates deliveries is a day old.
    exit when delivery_month_start((month + interval '1 month')::date) > now() - interval '1 day';
    continue when keeps_deliveries(month, tenant_ids, cutoffs);
    lock table only public.deliveries, only public.delivery_attempts in access exclusive mode;
    continue when keeps_deliveries(month, tenant_ids, cutoffs);
    insert into public.replication_removed_months (month) values (month);
    execute format('drop table public.deliveries_%s, public.delivery_attempts_%s', suffix, suffix);
    return month;
  end loop;
  return null;
end $$;
revoke execute on function drop_expired_delivery_month(text[], timestamptz[]) from public;

-- Whether a month has a delivery that is pending or has not expired. It reads least and greatest values
-- from the ends of indexes of the partition itself: to find out that a condition holds for no row of a
-- month, Postgres may read all of them.
create function keeps_deliveries(of_month date, tenant_ids text[], cutoffs timestamptz[])
  returns boolean language plpgsql set search_path = pg_catalog, public, pg_temp as $$
declare
  keeps boolean;
begin
  execute format('
    select (select min(tenant_id) from public.%1$I where state = ''pending'') is not null
    or exists (
      select from public.tenants as t
      left join unnest($1, $2) as c (tenant_id, cutoff) using (tenant_id)
      cross join lateral (
        select max(ended_at) as ended_at from public.%1$I as d where d.tenant_id = t.tenant_id
      ) as last
      where last.ended_at >= coalesce(c.cutoff, ''-infinity'')
    )', 'deliveries_' || to_char(of_month, 'YYYY_MM'))
  into keeps using tenant_ids, cutoffs;
  return keeps;
end $$;
revoke execute on function keeps_deliveries(date, text[], timestamptz[]) from public;
