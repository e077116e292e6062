/**
 * The work of a bulk job. A step changes some alerts and moves the job's position in one
 * transaction, so each alert is changed once, whichever console does it and whenever one dies.
 */

import type { AlertFilter } from '#shared/core/alerts/alert-filters.ts'
import type { Disposition } from '#shared/core/alerts/dispositions.ts'
import { bulkStepAlerts } from '#shared/core/base/limits/alerts.ts'
import { includesRole, seesTenant } from '#shared/core/operators/roles.ts'
import { findOperatorByEmail } from '#shared/io/operators/operator-store.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres, Queryable } from '#shared/io/postgres/postgres.ts'
import { lockSequences } from '../alert-lock.ts'
import { listUncounted } from '../list-alerts.ts'
import { setAssignees } from '../set-assignees.ts'
import { setDispositions } from '../set-dispositions.ts'
import { type BulkJobRow, bulkJobColumns, toMeant } from './bulk-job-store.ts'

/** What one step did, and where the next one begins. */
type Step = {
  done: number
  changed: number
  kept: number
  more: boolean
  afterAt?: string
  afterAlertId?: string
  afterChangeId?: number
}

/**
 * Changes the next alerts of a job and ends its lease; after the last one it ends the job. A job
 * whose author may not change alerts any more is cancelled.
 * @returns whether it goes on
 */
export function stepBulkJob(postgres: Postgres, jobId: string): Promise<boolean> {
  return postgres.transaction(async (tx) => {
    const read = `select ${bulkJobColumns} from bulk_jobs where job_id = $1`
    const [first] = (await tx.query<BulkJobRow>(read, [jobId])).rows
    if (first === undefined || first.state !== 'running') return false
    // A filter may pass many alerts before it finds some, and the scorer waits for the lock.
    const page = first.filter === null ? null : await findPage(tx, first, first.filter)
    // First of all locks, as every change of alerts does.
    await lockSequences(tx, [first.tenant_id])
    const [job] = (await tx.query<BulkJobRow>(`${read} for update`, [jobId])).rows
    if (job === undefined || job.state !== 'running') return false
    // Another console has made this step meanwhile.
    if (job.after_alert_id !== first.after_alert_id) return true
    if (!(await mayChange(tx, job))) {
      await cancelForLackOfRights(tx, job)
      return false
    }
    const step = await (job.undo_of === null ? change(tx, job, page) : undo(tx, job, job.undo_of))
    await tx.query(
      `update bulk_jobs set done = done + $2, changed = changed + $3, kept = kept + $4,
         after_at = coalesce($5, after_at), after_alert_id = coalesce($6, after_alert_id),
         after_change_id = coalesce($7, after_change_id),
         leased_until = clock_timestamp(),
         state = case when $8 then 'running' else 'done' end,
         ended_at = case when $8 then null else clock_timestamp() end
       where job_id = $1`,
      [
        ...[jobId, step.done, step.changed, step.kept],
        ...[step.afterAt ?? null, step.afterAlertId ?? null, step.afterChangeId ?? null],
        step.more,
      ],
    )
    return step.more
  })
}

/** Whether the author of a job could begin it now. `admin` is the bearer of ADMIN_TOKEN. */
async function mayChange(tx: Queryable, { actor, tenant_id: tenantId }: BulkJobRow) {
  if (actor === 'admin') return true
  const author = await findOperatorByEmail(tx, actor)
  if (author === null || author.disabled) return false
  return includesRole(author.role, 'analyst') && seesTenant(author.tenants, tenantId)
}

async function cancelForLackOfRights(tx: Queryable, job: BulkJobRow): Promise<void> {
  await tx.query(
    `update bulk_jobs set state = 'cancelled', ended_at = clock_timestamp() where job_id = $1`,
    [job.job_id],
  )
  const { job_id, tenant_id: tenantId, done, changed } = job
  const why = `${job.actor} may not change alerts of the tenant any more`
  const after = { job_id, done, changed, why }
  await insertAudit(tx, { actor: 'system', tenantId, action: 'alert.bulk_cancelled', after })
}

/** Alerts that a step looks at, and where the next one begins. */
type Page = Pick<Step, 'more' | 'afterAt' | 'afterAlertId'> & { alertIds: string[] }

/** Sets what the job sets on the next alerts that it means. @param page null for a selection */
async function change(tx: Queryable, job: BulkJobRow, page: Page | null): Promise<Step> {
  const { alertIds, ...step } =
    page === null ? pickSelected(job) : { ...page, alertIds: await findMeant(tx, job, page) }
  const by = { tenantId: job.tenant_id, actor: job.actor, jobId: job.job_id, undoOf: null }
  const { disposition, assignee, note } = job
  const changed =
    disposition === null
      ? await setAssignees(tx, {
          ...by,
          alerts: alertIds.map((alertId) => ({ alertId, assignee })),
        })
      : (
          await setDispositions(tx, {
            ...by,
            note,
            alerts: alertIds.map((alertId) => ({ alertId, disposition })),
          })
        ).length
  return { ...step, done: alertIds.length, changed, kept: 0 }
}

function pickSelected({ alert_ids: ids, done }: BulkJobRow): Page {
  const end = done + bulkStepAlerts
  return { alertIds: ids!.slice(done, end), more: end < ids!.length }
}

/** Finds the next alerts of a filter. Without the lock some of them may be changed afterwards. */
async function findPage(tx: Queryable, job: BulkJobRow, filter: AlertFilter): Promise<Page> {
  const after =
    job.after_at === null
      ? null
      : { createdAtMs: job.after_at.getTime(), alertId: job.after_alert_id! }
  const filters = toMeant(job.tenant_id, filter, job.until_at!)
  const page = await listUncounted(tx, { ...filters, limit: bulkStepAlerts, after })
  const last = page.alerts.at(-1)
  return {
    alertIds: page.alerts.map((alert) => alert.alert_id),
    more: page.next !== null,
    ...(last === undefined ? {} : { afterAt: last.created_at, afterAlertId: last.alert_id }),
  }
}

/** Those of a page that the filter still matches, under the lock. */
async function findMeant(tx: Queryable, job: BulkJobRow, { alertIds }: Page): Promise<string[]> {
  const filters = toMeant(job.tenant_id, job.filter!, job.until_at!)
  const meant = await listUncounted(tx, {
    ...filters,
    alertIds,
    limit: bulkStepAlerts,
    after: null,
  })
  return meant.alerts.map((alert) => alert.alert_id)
}

/** Where each kind of change is recorded: its table, its key and the value before. */
export const changesOfJobs = {
  disposition: { table: 'alert_dispositions', key: 'disposition_id', before: 'from_disposition' },
  assignee: { table: 'alert_assignments', key: 'assignment_id', before: 'from_assignee' },
} as const

/**
 * A change of the job that is undone; `latest`: the alert was not changed since. Later changes that
 * were undone themselves, and their undos, leave the alert as it was.
 */
type AppliedChange = { change_id: number; alert_id: string; before: string | null; latest: boolean }

/** Puts the next alerts that the other job changed back, unless they were changed since. */
async function undo(tx: Queryable, job: BulkJobRow, undoOf: string): Promise<Step> {
  const { table, key, before } = changesOfJobs[job.sets]
  const { rows } = await tx.query<AppliedChange>(
    `select made.${key} as change_id, made.alert_id, made.${before} as before, not exists (
       select 1 from ${table} as later where later.tenant_id = made.tenant_id
         and later.alert_id = made.alert_id and later.${key} > made.${key}
         and later.undoes is null and not exists (
           select 1 from ${table} as back where back.tenant_id = made.tenant_id
             and back.alert_id = made.alert_id and back.undoes = later.${key})) as latest
     from ${table} as made
     where made.job_id = $1 and made.tenant_id = $2 and made.${key} > $3
     order by made.${key} limit $4`,
    [undoOf, job.tenant_id, job.after_change_id, bulkStepAlerts + 1],
  )
  const page = rows.slice(0, bulkStepAlerts)
  const back = page.filter(({ latest }) => latest)
  const by = { tenantId: job.tenant_id, actor: job.actor, jobId: job.job_id, undoOf }
  const changed =
    job.sets === 'assignee'
      ? await setAssignees(tx, {
          ...by,
          alerts: back.map((one) => ({
            alertId: one.alert_id,
            assignee: one.before,
            undoes: one.change_id,
          })),
        })
      : (
          await setDispositions(tx, {
            ...by,
            note: job.note,
            alerts: back.map((one) => ({
              alertId: one.alert_id,
              disposition: one.before as Disposition,
              undoes: one.change_id,
            })),
          })
        ).length
  const last = page.at(-1)
  return {
    done: page.length,
    changed,
    kept: page.length - changed,
    more: rows.length > page.length,
    ...(last === undefined ? {} : { afterChangeId: last.change_id }),
  }
}
