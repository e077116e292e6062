/** `di alerts bulk ...`: the bulk changes of a tenant's alerts, which can be cancelled and undone. */
import { type Answer, change, group, limit, read } from '../commands.ts'
import { toFields } from '../tables.ts'

type BulkJob = Answer<'/bulk-jobs/{job_id}'>

export const bulk = group('bulk', 'changes of many alerts at once', [
  read(
    'list <slug>',
    'list the bulk changes of a tenant, newest first; they are kept for 30 days',
    '/tenants/{tenant_id}/bulk-jobs',
    {
      options: [limit(50)],
      columns: [
        ['JOB', 'job_id'],
        ['BEGUN', 'created_at'],
        ['WHO', 'actor'],
        ['WHAT', toWhat],
        ['STATE', 'state'],
        ['ALERTS', 'total'],
        ['CHANGED', 'changed'],
        ['UNDONE BY', 'undone_by'],
      ],
      empty: 'There are no bulk changes.',
    },
  ),
  change(
    'cancel <job-id>',
    'cancel a bulk change that is running; what it changed stays',
    ['post', '/bulk-jobs/{job_id}/cancel'],
    { body: () => ({}), text: toJobText },
  ),
  change(
    'undo <job-id>',
    'put every alert of an ended bulk change back, unless it was changed again since',
    ['post', '/bulk-jobs/{job_id}/undo'],
    { body: () => ({}), text: toJobText },
  ),
])

type What = Pick<BulkJob, 'sets' | 'disposition' | 'assignee' | 'undo_of'>

function toWhat({ sets, disposition, assignee, undo_of: undoOf }: What): string {
  if (undoOf !== null) return `undo of ${undoOf}`
  if (sets === 'disposition') return `to ${disposition}`
  return assignee === null ? 'unassign' : `assign to ${assignee}`
}

function toJobText(job: BulkJob): string {
  return toFields({
    job_id: job.job_id,
    what: toWhat(job),
    state: job.state,
    alerts: job.total,
    done: job.done,
    changed: job.changed,
    kept: job.undo_of === null ? undefined : job.kept,
  })
}
