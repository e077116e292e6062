/**
 * Changes of disposition of all alerts that a filter matches, in Postgres. A job walks the list in
 * its order; a step changes a page and moves the job's position in one transaction, so it is done
 * once, whichever console does it and whenever one dies.
 */
import type { Disposition } from '#shared/core/alerts/alert-rules.ts'
import { dayMs } from '#shared/core/base/instants.ts'
import { bulkLeaseMs, bulkStepAlerts } from '#shared/core/base/limits/alerts.ts'
import { type TenantScope, toSlugs } from '#shared/core/operators/roles.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres, Queryable } from '#shared/io/postgres/postgres.ts'
import { lockSequences } from './alert-lock.ts'
import { listAlerts, listUncounted } from './list-alerts.ts'
import { type FilterQuery, toAlertFilters } from './list-by-query.ts'
import { setDispositions } from './set-dispositions.ts'

/** A job as operators see it. Times are ISO-8601. */
export type BulkJob = {
  job_id: string
  tenant_id: string
  disposition: Disposition
  note: string | null
  actor: string
  state: 'running' | 'done' | 'cancelled'
  /** Alerts that matched when it began. */
  total: number
  /** Alerts looked at so far. */
  done: number
  /** Alerts whose disposition it changed. */
  changed: number
  created_at: string
  ended_at: string | null
}

type Row = Omit<BulkJob, 'created_at' | 'ended_at'> & {
  filter: FilterQuery
  created_at: Date
  ended_at: Date | null
  until_at: Date
  after_at: Date | null
  after_alert_id: string | null
}

const columns = `job_id, tenant_id, filter, disposition, note, actor, state, total, done, changed,
  created_at, ended_at, until_at, after_at, after_alert_id`

const toView = (row: Row): BulkJob => ({
  job_id: row.job_id,
  tenant_id: row.tenant_id,
  disposition: row.disposition,
  note: row.note,
  actor: row.actor,
  state: row.state,
  total: row.total,
  done: row.done,
  changed: row.changed,
  created_at: row.created_at.toISOString(),
  ended_at: row.ended_at?.toISOString() ?? null,
})

/** The filters of a job: alerts that were raised after its start are not meant. */
function toFilters({
  tenant_id,
  filter,
  until_at,
}: Pick<Row, 'tenant_id' | 'filter' | 'until_at'>) {
  const filters = toAlertFilters(tenant_id, filter)
  return { ...filters, toMs: Math.min(filters.toMs ?? Infinity, until_at.getTime()) }
}

/** Alerts that a filter matches, and the end of what was raised when they were counted. */
export type Matching = { total: number; untilAt: Date }

/**
 * Counts what a job would change. It needs no lock: alerts of a tenant are dated in the order in
 * which they become visible, a millisecond apart at least, so none appears before `untilAt` later.
 * @throws PostgresUnavailableError
 */
export async function countMatching(
  db: Queryable,
  { tenantId, filter }: { tenantId: string; filter: FilterQuery },
): Promise<Matching> {
  const { rows } = await db.query<{ until_at: Date }>(
    `select coalesce(max(created_at), 'epoch') + interval '1 millisecond' as until_at
     from alerts where tenant_id = $1`,
    [tenantId],
  )
  const { until_at } = rows[0]!
  const filters = toFilters({ tenant_id: tenantId, filter, until_at })
  const { total } = await listAlerts(db, { ...filters, limit: 1, after: null })
  return { total, untilAt: until_at }
}

/**
 * Begins a job when as many alerts match as its author saw. They are counted before the lock, for
 * which the scorer waits as well.
 * @param wanted.count `countMatching`, within the caller's bounds
 * @returns the job; or the number of alerts that match now; or `busy` with too many jobs
 */
export async function startBulkJob(
  postgres: Postgres,
  wanted: {
    jobId: string
    tenantId: string
    filter: FilterQuery
    disposition: Disposition
    note: string | null
    actor: string
    expectedCount: number
    runningMax: number
    count: (of: { tenantId: string; filter: FilterQuery }) => Promise<Matching>
  },
): Promise<BulkJob | number | 'busy'> {
  const { jobId, tenantId, filter, disposition, note, actor } = wanted
  const { total, untilAt } = await wanted.count({ tenantId, filter })
  if (total !== wanted.expectedCount) return total
  return postgres.transaction(async (tx) => {
    await lockSequences(tx, [tenantId])
    const running = await tx.query<{ running: number }>(
      `select count(*) as running from bulk_jobs where tenant_id = $1 and state = 'running'`,
      [tenantId],
    )
    if (running.rows[0]!.running >= wanted.runningMax) return 'busy'
    const { rows } = await tx.query<Row>(
      `insert into bulk_jobs
         (job_id, tenant_id, filter, disposition, note, actor, total, until_at)
       values ($1, $2, $3::jsonb, $4, $5, $6, $7, $8) returning ${columns}`,
      [jobId, tenantId, JSON.stringify(filter), disposition, note, actor, total, untilAt],
    )
    const after = { job_id: jobId, filter, disposition, note, total }
    await insertAudit(tx, { actor, tenantId, action: 'alert.bulk_begun', after })
    return toView(rows[0]!)
  })
}

/** One job of the tenants in a scope. @returns null when there is none */
export async function findBulkJob(
  db: Queryable,
  { jobId, scope }: { jobId: string; scope: TenantScope },
): Promise<BulkJob | null> {
  const { rows } = await db.query<Row>(
    `select ${columns} from bulk_jobs
     where job_id = $1 and ($2::text[] is null or tenant_id = any($2))`,
    [jobId, toSlugs(scope)],
  )
  return rows[0] === undefined ? null : toView(rows[0])
}

/** Cancels a running job; what it changed stays. @returns the job as it now is, or null */
export function cancelBulkJob(
  postgres: Postgres,
  { jobId, scope, actor }: { jobId: string; scope: TenantScope; actor: string },
): Promise<BulkJob | null> {
  return postgres.transaction(async (tx) => {
    const found = await findBulkJob(tx, { jobId, scope })
    if (found === null) return null
    const { rows } = await tx.query<Row>(
      `update bulk_jobs set state = 'cancelled', ended_at = clock_timestamp()
       where job_id = $1 and state = 'running' returning ${columns}`,
      [jobId],
    )
    if (rows[0] === undefined) return await findBulkJob(tx, { jobId, scope })
    const after = { job_id: jobId, done: rows[0].done, changed: rows[0].changed }
    const { tenant_id: tenantId } = rows[0]
    await insertAudit(tx, { actor, tenantId, action: 'alert.bulk_cancelled', after })
    return toView(rows[0])
  })
}

/** Takes the lease of a running job that no console has. @returns its id, or null */
export async function leaseBulkJob(db: Queryable): Promise<string | null> {
  const { rows } = await db.query<{ job_id: string }>(
    `update bulk_jobs set leased_until = now() + $1 * interval '1 millisecond'
     where job_id = (
       select job_id from bulk_jobs where state = 'running' and leased_until < now()
       order by created_at limit 1 for update skip locked
     ) returning job_id`,
    [bulkLeaseMs],
  )
  return rows[0]?.job_id ?? null
}

/**
 * Changes the next alerts of a job, renews its lease, and ends it after the last one.
 * @returns whether it goes on
 */
export function stepBulkJob(postgres: Postgres, jobId: string): Promise<boolean> {
  return postgres.transaction(async (tx) => {
    const read = 'from bulk_jobs where job_id = $1'
    const first = await tx.query<{ tenant_id: string }>(`select tenant_id ${read}`, [jobId])
    if (first.rows[0] === undefined) return false
    const { tenant_id: tenantId } = first.rows[0]
    // First of all locks, as every change of alerts does.
    await lockSequences(tx, [tenantId])
    const { rows } = await tx.query<Row>(`select ${columns} ${read} for update`, [jobId])
    const job = rows[0]
    if (job === undefined || job.state !== 'running') return false
    const after =
      job.after_at === null
        ? null
        : { createdAtMs: job.after_at.getTime(), alertId: job.after_alert_id! }
    const page = await listUncounted(tx, { ...toFilters(job), limit: bulkStepAlerts, after })
    const { disposition, note, actor } = job
    const alertIds = page.alerts.map((alert) => alert.alert_id)
    const change = { tenantId, alertIds, disposition, note, actor, jobId }
    const changed = alertIds.length === 0 ? 0 : await setDispositions(tx, change)
    const last = page.alerts.at(-1)
    await tx.query(
      `update bulk_jobs set done = done + $2, changed = changed + $3,
         after_at = coalesce($4, after_at), after_alert_id = coalesce($5, after_alert_id),
         leased_until = now() + $6 * interval '1 millisecond',
         state = case when $7 then 'running' else 'done' end,
         ended_at = case when $7 then null else clock_timestamp() end
       where job_id = $1`,
      [
        jobId,
        alertIds.length,
        changed,
        last?.created_at ?? null,
        last?.alert_id ?? null,
        bulkLeaseMs,
        page.next !== null,
      ],
    )
    return page.next !== null
  })
}

/**
 * Removes jobs that ended 30 days ago or earlier.
 * @param most how many at most; fewer removed means that none is left
 */
export async function removeEndedBulkJobs(
  db: Queryable,
  nowMs: number,
  most: number,
): Promise<number> {
  const { rowCount } = await db.query(
    `delete from bulk_jobs where job_id in (
       select job_id from bulk_jobs where ended_at < $1
       order by ended_at limit $2 for update skip locked)`,
    [new Date(nowMs - 30 * dayMs), most],
  )
  return rowCount
}
