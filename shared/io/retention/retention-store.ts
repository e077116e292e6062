/**
 * Retention in Postgres: the tenants' limits, the schedule of rounds, and removal in bounded steps.
 * The counters of alerts change in the transaction that removes them, so totals are always exact.
 * Deliveries that have not ended are never removed.
 */
import {
  type RetainedKind,
  type RetentionDays,
  type RetentionSetting,
  retainedKinds,
  toRetentionView,
  toStoredDays,
} from '#shared/core/tenants/retention.ts'
import { lockSequences } from '#shared/io/alerts/alert-lock.ts'
import { preferKeyLookups } from '#shared/io/deliveries/key-lookups.ts'
import { type Queryable, type Session, toTime } from '#shared/io/postgres/postgres.ts'

/** A tenant's limits, its own or the defaults. */
export type TenantRetention = { tenantId: string; days: RetentionDays }

/** Rows that a step removed, by what they were. */
export type Removed = { alerts: number; deliveries: number; attempts: number }

/**
 * Sets some of a tenant's limits and makes a round due. Call it in a transaction.
 * @returns false when there is no such tenant
 */
export async function setRetention(
  tx: Queryable,
  tenantId: string,
  settings: Partial<Record<RetainedKind, RetentionSetting>>,
): Promise<boolean> {
  const values = retainedKinds.flatMap((kind) => {
    const setting = settings[kind]
    return setting === undefined ? [false, null] : [true, toStoredDays(setting)]
  })
  const { rowCount } = await tx.query(
    `update tenants set
       event_retention_days = case when $2::boolean then $3::integer else event_retention_days end,
       alert_retention_days = case when $4::boolean then $5::integer else alert_retention_days end,
       delivery_retention_days =
         case when $6::boolean then $7::integer else delivery_retention_days end
     where tenant_id = $1`,
    [tenantId, ...values],
  )
  if (rowCount === 0) return false
  await tx.query('update retention_rounds set due_at = least(due_at, clock_timestamp())')
  return true
}

/** The limits of every tenant that there is. */
export async function listRetention(db: Queryable): Promise<TenantRetention[]> {
  const { rows } = await db.query<{
    tenant_id: string
    events: number | null
    alerts: number | null
    deliveries: number | null
  }>(
    `select tenant_id, event_retention_days as events, alert_retention_days as alerts,
       delivery_retention_days as deliveries
     from tenants order by tenant_id`,
  )
  return rows.map(({ tenant_id, ...stored }) => {
    const days = (kind: RetainedKind) => toRetentionView(kind, stored[kind]).days
    return {
      tenantId: tenant_id,
      days: { events: days('events'), alerts: days('alerts'), deliveries: days('deliveries') },
    }
  })
}

/** A round that is due: `seen` names it, `nowMs` is the clock of Postgres. */
type DueRound = { seen: string; nowMs: number }

/** @returns null when no round is due yet */
export async function findDueRound(db: Queryable): Promise<DueRound | null> {
  const { rows } = await db.query<{ seen: string; now_ms: number }>(
    `select due_at::text as seen,
       (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms
     from retention_rounds where due_at <= clock_timestamp()`,
  )
  const row = rows[0]
  return row === undefined ? null : { seen: row.seen, nowMs: row.now_ms }
}

/** Schedules the next round; a change during this round makes it due at once. */
export async function scheduleNextRound(
  db: Queryable,
  { seen }: DueRound,
  inMs: number,
): Promise<void> {
  await db.query(
    `update retention_rounds set due_at = clock_timestamp() + $2 * interval '1 millisecond'
     where due_at = $1::timestamptz`,
    [seen, inMs],
  )
}

/** A tenant with rows that are too old, and before which instant they are. */
export type Overdue = { tenantId: string; cutoffMs: number }

const overdueSql = {
  alerts: `select from alerts as a
    where a.tenant_id = candidates.tenant_id and a.created_at < candidates.cutoff`,
  deliveries: `select from deliveries as d
    where d.tenant_id = candidates.tenant_id and d.ended_at < candidates.cutoff`,
}

/** Those of the tenants that have something to remove: one look at the oldest row of each. */
export async function findOverdue(
  db: Queryable,
  kind: 'alerts' | 'deliveries',
  candidates: readonly Overdue[],
): Promise<Overdue[]> {
  const { rows } = await db.query<{ tenant_id: string }>(
    `select candidates.tenant_id from unnest($1::text[], $2::timestamptz[]) as candidates (tenant_id, cutoff)
     cross join lateral (${overdueSql[kind]} limit 1) as oldest`,
    [candidates.map((one) => one.tenantId), candidates.map((one) => toTime(one.cutoffMs))],
  )
  const overdue = new Set(rows.map((row) => row.tenant_id))
  return candidates.filter((one) => overdue.has(one.tenantId))
}

/**
 * Creates the partitions of deliveries of this month and the next where they are missing.
 * @throws lockNotAvailable when a transaction is using the deliveries for long; call again
 */
export async function createDeliveryMonths(db: Queryable): Promise<void> {
  await db.query('select create_delivery_months()')
}

/**
 * Drops the oldest month of deliveries, with their attempts, in which every delivery ended before
 * the cutoff of its tenant. It records the month for replication, in place of each delivery's key.
 * @param cutoffs null keeps the tenant's deliveries; so does a tenant that is left out
 * @returns the month as 2026-01; null when there is none to drop
 * @throws lockNotAvailable when a transaction is using the deliveries for long; call again
 */
export async function dropExpiredDeliveryMonth(
  db: Queryable,
  cutoffs: readonly { tenantId: string; cutoffMs: number | null }[],
): Promise<string | null> {
  const { rows } = await db.query<{ month: string | null }>(
    `select to_char(drop_expired_delivery_month($1::text[], $2::timestamptz[]), 'YYYY-MM') as month`,
    [
      cutoffs.map((one) => one.tenantId),
      cutoffs.map((one) => (one.cutoffMs === null ? null : toTime(one.cutoffMs))),
    ],
  )
  return rows[0]!.month
}

const removeDeliveriesSql = `
with expired as (
  select delivery_id, created_at from deliveries
  where tenant_id = $1 and ended_at < $2
  order by ended_at limit $3
  for update skip locked
), gone_attempts as (
  delete from delivery_attempts as a using expired
  where a.delivery_id = expired.delivery_id and a.delivery_created_at = expired.created_at
  returning 1
), gone as (
  delete from deliveries as d using expired
  where d.delivery_id = expired.delivery_id and d.created_at = expired.created_at
  returning 1
)
select (select count(*) from gone) as deliveries, (select count(*) from gone_attempts) as attempts`

/**
 * Removes deliveries that ended before the cutoff, with their attempts, oldest first. A replay of
 * an alert that has to create its delivery again waits until it is removed.
 * @param most how many at most; fewer removed means that none is left
 */
export async function removeDeliveries(
  tx: Queryable,
  { tenantId, cutoffMs }: Overdue,
  most: number,
): Promise<Removed> {
  await lockSequences(tx, [tenantId])
  await preferKeyLookups(tx)
  const { rows } = await tx.query<{ deliveries: number; attempts: number }>(removeDeliveriesSql, [
    tenantId,
    toTime(cutoffMs),
    most,
  ])
  return { alerts: 0, ...rows[0]! }
}

/**
 * Removes expired audit entries, oldest first. The database decides which are expired.
 * @param most how many at most; fewer removed means that none is left
 */
export async function removeAuditEntries(db: Queryable, most: number): Promise<number> {
  const { rows } = await db.query<{ removed: number }>(
    'select remove_expired_audit_entries($1) as removed',
    [most],
  )
  return rows[0]!.removed
}

const removeAlertsSql = `
with expired as (
  select alert_id, created_at, disposition, action from alerts as a
  where tenant_id = $1 and created_at < $2
    and not exists (
      select from deliveries as d
      where d.tenant_id = a.tenant_id and d.alert_id = a.alert_id and d.ended_at is null)
  order by created_at, alert_id limit $3
  for update skip locked
), sent as materialized (
  select d.delivery_id, d.created_at, alert_id from deliveries as d join expired using (alert_id)
  where d.tenant_id = $1
), ended as (
  select d.delivery_id, d.created_at, d.alert_id
  from deliveries as d join sent using (delivery_id, created_at)
  where d.ended_at is not null
  order by d.delivery_id for update of d
), gone_deliveries as (
  delete from deliveries as d using ended
  where d.delivery_id = ended.delivery_id and d.created_at = ended.created_at
  returning 1
), gone_attempts as (
  delete from delivery_attempts as a using ended
  where a.delivery_id = ended.delivery_id and a.delivery_created_at = ended.created_at
  returning 1
), gone as (
  delete from alerts as a using expired
  where a.tenant_id = $1 and a.alert_id = expired.alert_id
    -- Unless one of its deliveries was replayed meanwhile: none is without its alert.
    and expired.alert_id not in (
      select alert_id from sent where delivery_id not in (select delivery_id from ended))
  returning a.created_at, a.disposition, a.action
), counted as (
  insert into alert_counts_by_day as counts (tenant_id, day, disposition, decision, alert_count)
  select $1, (created_at at time zone 'UTC')::date as day, disposition, action, -count(*)
  from gone group by 2, 3, 4
  on conflict (tenant_id, day, disposition, decision)
  do update set alert_count = counts.alert_count + excluded.alert_count
), counted_by_hour as (
  insert into alert_counts_by_hour as counts (tenant_id, hour, disposition, decision, alert_count)
  select $1, date_bin('1 hour', created_at, 'epoch') as hour, disposition, action, -count(*)
  from gone group by 2, 3, 4
  on conflict (tenant_id, hour, disposition, decision)
  do update set alert_count = counts.alert_count + excluded.alert_count
)
select (select count(*) from gone) as alerts,
  (select count(*) from gone_deliveries) as deliveries,
  (select count(*) from gone_attempts) as attempts`

/**
 * Removes alerts that were raised before the cutoff, oldest first, with their dispositions, their
 * deliveries and their part of the counters. One whose delivery has not ended waits for it, and so
 * does one that an operator changes at this moment.
 * @param most how many at most; fewer removed means that none is left
 */
export async function removeAlerts(
  postgres: Session,
  { tenantId, cutoffMs }: Overdue,
  most: number,
): Promise<Removed> {
  return postgres.transaction(async (tx) => {
    await lockSequences(tx, [tenantId])
    await preferKeyLookups(tx)
    const cutoff = toTime(cutoffMs)
    const { rows } = await tx.query<Removed>(removeAlertsSql, [tenantId, cutoff, most])
    const removed = rows[0]!
    if (removed.alerts < most) await removeEmptyCounters(tx, tenantId, cutoff)
    return removed
  })
}

/** Counters of days and hours that are gone for good. */
async function removeEmptyCounters(tx: Queryable, tenantId: string, cutoff: string) {
  await tx.query(
    `delete from alert_counts_by_day
     where tenant_id = $1 and day < ($2::timestamptz at time zone 'UTC')::date and alert_count = 0`,
    [tenantId, cutoff],
  )
  await tx.query(
    `delete from alert_counts_by_hour
     where tenant_id = $1
       and hour < date_bin('1 hour', $2::timestamptz, 'epoch') and alert_count = 0`,
    [tenantId, cutoff],
  )
}
