/**
 * Bulk jobs in Postgres: a change of disposition or assignee of all alerts that a filter matches or
 * that were selected. They begin, are listed and are cancelled here; bulk-job-steps.ts does the
 * work, and undo-bulk-job.ts takes it back.
 */

import type { AlertFilter } from '#shared/core/alerts/alert-filters.ts'
import type { BulkJob } from '#shared/core/alerts/alert-work-schemas.ts'
import type { Disposition } from '#shared/core/alerts/dispositions.ts'
import { dayMs } from '#shared/core/base/instants.ts'
import { bulkLeaseMs } from '#shared/core/base/limits/alerts.ts'
import { type TenantScope, toSlugs } from '#shared/core/operators/roles.ts'
import { type Approval, claimChange } from '#shared/io/approvals/claim-change.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres, Queryable } from '#shared/io/postgres/postgres.ts'
import { lockSequences } from '../alert-lock.ts'
import type { AlertSelection } from '../alert-query.ts'
import { canBeStored } from '../find-alert.ts'
import { listAlerts } from '../list-alerts.ts'

/** What a job sets. An undo has neither: each alert goes back to what it was. */
export type BulkChange =
  | { sets: 'disposition'; disposition: Disposition }
  | { sets: 'assignee'; assignee: string | null }

/** Which alerts a job means: those of a filter, as `countMatching` found them, or a selection. */
export type BulkTarget =
  | { filter: AlertFilter; matching: Matching }
  | { alertIds: readonly string[] }

export type BulkJobRow = Omit<BulkJob, 'created_at' | 'ended_at'> & {
  filter: AlertFilter | null
  alert_ids: string[] | null
  created_at: Date
  ended_at: Date | null
  until_at: Date | null
  after_at: Date | null
  after_alert_id: string | null
  after_change_id: number
}

export const bulkJobColumns = `job_id, tenant_id, sets, filter, alert_ids, undo_of, disposition,
  assignee, note, actor, state, total, done, changed, kept, created_at, ended_at, until_at,
  after_at, after_alert_id, after_change_id, (
    select undo.job_id from bulk_jobs as undo
    where undo.undo_of = bulk_jobs.job_id and undo.state <> 'cancelled') as undone_by`

export const toBulkJob = (row: BulkJobRow): BulkJob => ({
  job_id: row.job_id,
  tenant_id: row.tenant_id,
  sets: row.sets,
  disposition: row.disposition,
  assignee: row.assignee,
  note: row.note,
  actor: row.actor,
  state: row.state,
  total: row.total,
  done: row.done,
  changed: row.changed,
  kept: row.kept,
  undo_of: row.undo_of,
  undone_by: row.undone_by,
  created_at: row.created_at.toISOString(),
  ended_at: row.ended_at?.toISOString() ?? null,
})

/** The alerts of a job with a filter: those that were raised after its start are not meant. */
export function toMeant(tenantId: string, filter: AlertFilter, untilAt: Date): AlertSelection {
  return { tenantId, filter: { ...filter, to: Math.min(filter.to ?? Infinity, untilAt.getTime()) } }
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
  { tenantId, filter }: { tenantId: string; filter: AlertFilter },
): Promise<Matching> {
  const { rows } = await db.query<{ until_at: Date }>(
    `select coalesce(max(created_at), 'epoch') + interval '1 millisecond' as until_at
     from alerts where tenant_id = $1`,
    [tenantId],
  )
  const { until_at } = rows[0]!
  const meant = toMeant(tenantId, filter, until_at)
  const { total } = await listAlerts(db, { ...meant, limit: 1, after: null })
  return { total, untilAt: until_at }
}

type NewBulkJob = {
  jobId: string
  tenantId: string
  target: BulkTarget
  change: BulkChange
  note: string | null
  actor: string
  expectedCount: number
  runningMax: number
  approval?: Approval | undefined
}

/**
 * Begins a job when as many alerts are meant as its author saw. They are counted before the lock,
 * for which the scorer waits as well.
 * @returns the job; or the number of alerts that are meant now; or `busy` with too many jobs
 * @throws Problem approval_required where the tenant wants four eyes for so many
 */
export async function startBulkJob(
  postgres: Postgres,
  wanted: NewBulkJob,
): Promise<BulkJob | number | 'busy'> {
  const { jobId, tenantId, change, note, actor, approval } = wanted
  const { total, filter, untilAt, alertIds } = await findTarget(postgres, wanted)
  if (total !== wanted.expectedCount) return total
  const disposition = change.sets === 'disposition' ? change.disposition : null
  const assignee = change.sets === 'assignee' ? change.assignee : null
  return postgres.transaction(async (tx) => {
    await lockSequences(tx, [tenantId])
    if (await isBusy(tx, tenantId, wanted.runningMax)) return 'busy'
    await claimChange(tx, { tenantId, kind: 'bulk', approval, alerts: total, actor })
    const { rows } = await tx.query<BulkJobRow>(
      `insert into bulk_jobs (job_id, tenant_id, sets, filter, alert_ids, disposition, assignee,
         note, actor, total, until_at)
       values ($1, $2, $3, $4::jsonb, $5, $6, $7, $8, $9, $10, $11) returning ${bulkJobColumns}`,
      [
        ...[jobId, tenantId, change.sets, filter && JSON.stringify(filter), alertIds],
        ...[disposition, assignee, note, actor, total, untilAt],
      ],
    )
    const { sets, ...to } = change
    const which = filter === null ? { selected: total } : { filter }
    const after = { job_id: jobId, ...which, ...to, note, total }
    await insertAudit(tx, { actor, tenantId, action: 'alert.bulk_begun', after })
    return toBulkJob(rows[0]!)
  })
}

/** The columns of a job that say which alerts it means, and how many they are. */
async function findTarget(db: Queryable, { target, tenantId }: NewBulkJob) {
  if ('filter' in target) return { ...target.matching, filter: target.filter, alertIds: null }
  const alertIds = await listSelected(db, { tenantId, alertIds: target.alertIds })
  return { total: alertIds.length, filter: null, untilAt: null, alertIds }
}

type Selected = { tenantId: string; alertIds: readonly string[] }

/** Those of a selection that the tenant has. */
async function listSelected(db: Queryable, { tenantId, alertIds }: Selected): Promise<string[]> {
  const { rows } = await db.query<{ alert_id: string }>(
    'select alert_id from alerts where tenant_id = $1 and alert_id = any($2) order by alert_id',
    [tenantId, alertIds.filter(canBeStored)],
  )
  return rows.map((row) => row.alert_id)
}

/** How many alerts of a selection the tenant has. */
export const countSelected = async (db: Queryable, selected: Selected): Promise<number> =>
  (await listSelected(db, selected)).length

/** Whether a tenant has as many running jobs as it may. Call it under the lock of its alerts. */
export async function isBusy(tx: Queryable, tenantId: string, most: number): Promise<boolean> {
  const { rows } = await tx.query<{ running: number }>(
    `select count(*) as running from bulk_jobs where tenant_id = $1 and state = 'running'`,
    [tenantId],
  )
  return rows[0]!.running >= most
}

/** One job of the tenants in a scope. @returns null when there is none */
export async function findBulkJob(
  db: Queryable,
  { jobId, scope }: { jobId: string; scope: TenantScope },
): Promise<BulkJob | null> {
  const { rows } = await db.query<BulkJobRow>(
    `select ${bulkJobColumns} from bulk_jobs
     where job_id = $1 and ($2::text[] is null or tenant_id = any($2))`,
    [jobId, toSlugs(scope)],
  )
  return rows[0] === undefined ? null : toBulkJob(rows[0])
}

/** The newest jobs of a tenant, newest first. */
export async function listBulkJobs(
  db: Queryable,
  { tenantId, limit }: { tenantId: string; limit: number },
): Promise<BulkJob[]> {
  const { rows } = await db.query<BulkJobRow>(
    `select ${bulkJobColumns} from bulk_jobs
     where tenant_id = $1 order by created_at desc, job_id limit $2`,
    [tenantId, limit],
  )
  return rows.map(toBulkJob)
}

/** Cancels a running job; what it changed stays. @returns the job as it now is, or null */
export function cancelBulkJob(
  postgres: Postgres,
  { jobId, scope, actor }: { jobId: string; scope: TenantScope; actor: string },
): Promise<BulkJob | null> {
  return postgres.transaction(async (tx) => {
    const found = await findBulkJob(tx, { jobId, scope })
    if (found === null) return null
    const { rows } = await tx.query<BulkJobRow>(
      `update bulk_jobs set state = 'cancelled', ended_at = clock_timestamp()
       where job_id = $1 and state = 'running' returning ${bulkJobColumns}`,
      [jobId],
    )
    if (rows[0] === undefined) return await findBulkJob(tx, { jobId, scope })
    const after = { job_id: jobId, done: rows[0].done, changed: rows[0].changed }
    const { tenant_id: tenantId } = rows[0]
    await insertAudit(tx, { actor, tenantId, action: 'alert.bulk_cancelled', after })
    return toBulkJob(rows[0])
  })
}

/**
 * Takes the lease of the running job that has waited longest for its next step.
 * @returns its id, or null when each has a console
 */
export async function leaseBulkJob(db: Queryable): Promise<string | null> {
  const { rows } = await db.query<{ job_id: string }>(
    `update bulk_jobs set leased_until = now() + $1 * interval '1 millisecond'
     where job_id = (
       select job_id from bulk_jobs where state = 'running' and leased_until < now()
       order by leased_until, created_at limit 1 for update skip locked
     ) returning job_id`,
    [bulkLeaseMs],
  )
  return rows[0]?.job_id ?? null
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
