/**
 * Begins the undo of a bulk job: a job that puts each alert back to what it was before, where
 * it was not changed since. A job is undone once; an undo that was cancelled can be continued.
 */
import type { BulkJob } from '#shared/core/alerts/alert-work-schemas.ts'
import type { TenantScope } from '#shared/core/operators/roles.ts'
import { type Approval, claimChange } from '#shared/io/approvals/claim-change.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres, Queryable } from '#shared/io/postgres/postgres.ts'
import { lockSequences } from '../alert-lock.ts'
import { changesOfJobs } from './bulk-job-steps.ts'
import {
  type BulkJobRow,
  bulkJobColumns,
  findBulkJob,
  isBusy,
  toBulkJob,
} from './bulk-job-store.ts'

/** Why a job cannot be undone now. */
export type UndoRefusal = 'running' | 'is_undo' | 'undone' | 'nothing_changed' | 'busy'

/**
 * @returns the undo, a job of its own; or why there is none; or null when there is no such job
 * @throws Problem approval_required where the tenant wants four eyes for so many alerts
 */
export function startBulkUndo(
  postgres: Postgres,
  wanted: {
    /** The id of the undo. */
    jobId: string
    undoOf: string
    scope: TenantScope
    actor: string
    runningMax: number
    approval?: Approval | undefined
  },
): Promise<BulkJob | UndoRefusal | null> {
  const { jobId, undoOf, scope, actor, runningMax, approval } = wanted
  return postgres.transaction(async (tx) => {
    const first = await findBulkJob(tx, { jobId: undoOf, scope })
    if (first === null) return null
    const { tenant_id: tenantId, sets } = first
    // Counted before the lock, for which the scorer waits as well: an ended job changes no more.
    const start = await readStart(tx, undoOf)
    const counted = first.state === 'running' ? 0 : await countLeft(tx, first, start)
    await lockSequences(tx, [tenantId])
    // Under the lock no other undo of the job can be on its way.
    const job = await findBulkJob(tx, { jobId: undoOf, scope })
    if (job === null) return null
    const refusal = first.state === 'running' ? 'running' : refuse(job)
    if (refusal !== null) return refusal
    if (await isBusy(tx, tenantId, runningMax)) return 'busy'
    const from = await readStart(tx, undoOf)
    const total = from === start ? counted : await countLeft(tx, job, from)
    await claimChange(tx, { tenantId, kind: 'bulk_undo', approval, alerts: total, actor })
    const { rows } = await tx.query<BulkJobRow>(
      `insert into bulk_jobs (job_id, tenant_id, undo_of, sets, actor, after_change_id, total)
       values ($1, $2, $3, $4, $5, $6, $7) returning ${bulkJobColumns}`,
      [jobId, tenantId, undoOf, sets, actor, from, total],
    )
    const after = { job_id: jobId, undo_of: undoOf, total }
    await insertAudit(tx, { actor, tenantId, action: 'alert.bulk_undo_begun', after })
    return toBulkJob(rows[0]!)
  })
}

/** The last change that undos of a job which were cancelled have looked at; 0 without one. */
async function readStart(tx: Queryable, undoOf: string): Promise<number> {
  const { rows } = await tx.query<{ id: number }>(
    'select coalesce(max(after_change_id), 0) as id from bulk_jobs where undo_of = $1',
    [undoOf],
  )
  return rows[0]!.id
}

/** How many changes of a job come after one of them. */
async function countLeft(tx: Queryable, job: BulkJob, after: number): Promise<number> {
  const { table, key } = changesOfJobs[job.sets]
  const { rows } = await tx.query<{ count: number }>(
    `select count(*) as count from ${table} where job_id = $1 and tenant_id = $2 and ${key} > $3`,
    [job.job_id, job.tenant_id, after],
  )
  return rows[0]!.count
}

function refuse(job: BulkJob): UndoRefusal | null {
  if (job.state === 'running') return 'running'
  if (job.undo_of !== null) return 'is_undo'
  if (job.undone_by !== null) return 'undone'
  return job.changed === 0 ? 'nothing_changed' : null
}
