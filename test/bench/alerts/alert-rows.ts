/**
 * Alerts by the million for benchmarks, made inside Postgres: one big tenant beside 200 small ones,
 * sixty days of alerts up to now, most of them open, devices with 1 to 50 alerts each. The rows
 * equal those of the scorer and operators: ids in no order, `seq` without a gap and in the order of
 * `created_at`, exact counters by day and by hour.
 */
import { Client } from 'pg'
import { insertBareTenants } from '../../support/tenants/bare-tenant.ts'

export const bigTenantId = 'big'
export const smallTenants = 200
const alertsOfSmallTenant = 500
const spanDays = 60

/** The time range of a tenant's alerts: from `startMs` up to `endMs`. */
export type FilledSpan = { startMs: number; endMs: number }

/**
 * Fills a migrated, empty database.
 * @param alerts of the big tenant; the small ones have 500 each
 * @param nowMs the end of the sixty days
 */
export async function fillAlerts(
  url: string,
  { alerts, nowMs }: { alerts: number; nowMs: number },
): Promise<FilledSpan> {
  const span = { startMs: nowMs - spanDays * 86_400_000, endMs: nowMs }
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    // Foreign keys would be checked row by row; these rows are correct by construction.
    await client.query(`set session_replication_role = replica; set synchronous_commit = off;
      set maintenance_work_mem = '512MB'; set work_mem = '256MB'`)
    await insertTenants(client)
    const rebuild = await dropIndexes(client)
    // The big tenant first: a bare select without an order then finds its rows at once.
    await client.query(insertAlertsSql("array['big']"), [alerts, span.startMs, span.endMs])
    await client.query(insertAlertsSql('small'), [alertsOfSmallTenant, span.startMs, span.endMs])
    for (const statement of rebuild) await client.query(statement)
    await client.query(insertCountersSql)
    await client.query('vacuum (analyze, freeze)')
    await client.query('checkpoint')
  } finally {
    await client.end()
  }
  return span
}

async function insertTenants(client: Client): Promise<void> {
  const small = Array.from({ length: smallTenants }, (_, n) => `small-${n}`)
  await insertBareTenants(client, [bigTenantId, ...small])
  await client.query('update tenants set rest_rate_per_second = 1e6, rest_burst = 1e6')
}

/** One sort is several times cheaper than five million inserts into seven trees. */
async function dropIndexes(client: Client): Promise<string[]> {
  const constraints = await client.query<{ tab: string; name: string; definition: string }>(
    `select conrelid::regclass::text as tab, conname as name, pg_get_constraintdef(oid) as definition
     from pg_constraint
     where (conrelid = 'alerts'::regclass and contype = 'p')
       or (confrelid = 'alerts'::regclass and contype = 'f')
     order by contype`,
  )
  const indexes = await client.query<{ name: string; definition: string }>(
    `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition
     from pg_index where indrelid = 'alerts'::regclass and not indisprimary`,
  )
  for (const { tab, name } of constraints.rows) {
    await client.query(`alter table ${tab} drop constraint ${name}`)
  }
  for (const { name } of indexes.rows) await client.query(`drop index ${name}`)
  return [
    ...constraints.rows
      .toReversed()
      .map(
        ({ tab, name, definition }) => `alter table ${tab} add constraint ${name} ${definition}`,
      ),
    ...indexes.rows.map(({ definition }) => definition),
  ]
}

/**
 * Alerts `1..$1` of each tenant, evenly between `$2` and `$3`. A device has 1 to 50 of them: of
 * every 1,275 neighbours in a shuffled order the first belongs to one device, the next two to
 * another, and so on. The shuffle is a permutation, since 2,654,435,761 is a prime above any
 * possible count.
 */
const insertAlertsSql = (tenants: string): string => `
with numbered as (
  select tenant_id, n, n * 2654435761 % $1::bigint as place,
    ('x' || substr(md5(n::text), 1, 7))::bit(28)::int as dice,
    translate(encode(sha256(convert_to(tenant_id || ':' || n, 'UTF8')), 'base64'), '+/=', '-_')
      as digest
  from generate_series(1, $1::bigint) as n,
    unnest(${tenants === 'small' ? smallTenantsSql : tenants}) as tenant_id
), rows as (
  select *, place / 1275 * 50 + floor((sqrt(8 * (place % 1275) + 1) - 1) / 2)::bigint as device
  from numbered
)
insert into alerts (tenant_id, alert_id, seq, device_id, session_id, user_id, event_id, action,
  risk_score, rasp_score, reasons, policy_version, disposition, created_at)
select tenant_id, 'alr_' || substr(digest, 1, 26), n, 'device-' || device, 'session-' || n,
  case when dice % 3 > 0 then 'user-' || device / 2 end, 'evt_' || substr(digest, 10, 22),
  case when dice % 20 < 7 then 'BLOCK' else 'REVIEW' end, 40 + dice % 60, 30 + dice % 60,
  (array[
    '[{"code":"ROOTED","weight":40,"evidence":{"signals":["root.su_binary","root.magisk_detected"]}},{"code":"EMULATOR","weight":35,"evidence":{"signals":["emulator.is_emulator"]}}]',
    '[{"code":"HIGH_VELOCITY","weight":30,"evidence":{"sessions":41,"window_seconds":3600}},{"code":"DEBUGGER","weight":20,"evidence":{"signals":["debugger.attached"]}}]',
    '[{"code":"ROOTED","weight":55,"evidence":{"signals":["root.su_binary"]}}]'
  ]::jsonb[])[1 + dice % 3], 1,
  case when dice / 20 % 100 < 85 then 'OPEN' when dice / 20 % 100 < 93 then 'REVIEWED'
    when dice / 20 % 100 < 98 then 'FALSE_POSITIVE' else 'CONFIRMED' end,
  to_timestamp(($2::float8 + floor(($3::float8 - $2::float8) * (n - 1) / $1)) / 1000)
from rows order by n`

const smallTenantsSql = `array(select tenant_id from tenants where tenant_id like 'small-%')`

const insertCountersSql = `
with hours as (
  select tenant_id, date_bin('1 hour', created_at, 'epoch') as hour, disposition, action,
    count(*) as n
  from alerts group by 1, 2, 3, 4
), by_hour as (
  insert into alert_counts_by_hour (tenant_id, hour, disposition, decision, alert_count)
  select tenant_id, hour, disposition, action, n from hours order by 1, 2, 3, 4
), by_day as (
  insert into alert_counts_by_day (tenant_id, day, disposition, decision, alert_count)
  select tenant_id, (hour at time zone 'UTC')::date, disposition, action, sum(n)
  from hours group by 1, 2, 3, 4 order by 1, 2, 3, 4
)
insert into alert_sequences (tenant_id, last_seq)
select tenant_id, max(seq) from alerts group by 1
on conflict (tenant_id) do update set last_seq = excluded.last_seq`
