/** `di alerts bulk ...`: the bulk changes of a tenant's alerts, which can be cancelled and undone. */
import type { Command } from 'commander'
import type { BulkJob } from '#shared/core/alerts/alert-work-schemas.ts'
import { type CliContext, toTenantPath } from '../context.ts'
import { toLimit } from '../deliveries.ts'
import { toFields, toTable, toTime } from '../tables.ts'

/** Adds the group `bulk` to `alerts`. */
export function registerBulk(alerts: Command, context: CliContext): void {
  const bulk = alerts.command('bulk').description('changes of many alerts at once')
  bulk
    .command('list <slug>')
    .description('list the bulk changes of a tenant, newest first; they are kept for 30 days')
    .option('--limit <n>', 'at most this many', toLimit, 50)
    .option('--json', 'print one JSON document')
    .action(async (slug: string, options: { limit: number }) => {
      const path = `${toTenantPath(slug)}/bulk-jobs?limit=${options.limit}`
      const listed = (await context.adminFetch('GET', path)) as { data: BulkJob[] }
      context.out(listed, ({ data }) =>
        data.length === 0
          ? 'There are no bulk changes.'
          : toTable(
              ['JOB', 'BEGUN', 'WHO', 'WHAT', 'STATE', 'ALERTS', 'CHANGED', 'UNDONE BY'],
              data.map((job) => [
                job.job_id,
                toTime(job.created_at),
                job.actor,
                toWhat(job),
                job.state,
                String(job.total),
                String(job.changed),
                job.undone_by ?? '-',
              ]),
            ),
      )
    })
  const ends = [
    ['cancel', 'cancel a bulk change that is running; what it changed stays'],
    ['undo', 'put every alert of an ended bulk change back, unless it was changed again since'],
  ] as const
  for (const [name, description] of ends) {
    bulk
      .command(`${name} <job-id>`)
      .description(description)
      .option('--json', 'print one JSON document')
      .action(async (jobId: string) => {
        const path = `/bulk-jobs/${encodeURIComponent(jobId)}/${name}`
        context.out((await context.adminFetch('POST', path, {})) as BulkJob, toJobText)
      })
  }
}

function toWhat({ sets, disposition, assignee, undo_of: undoOf }: BulkJob): string {
  if (undoOf !== null) return `undo of ${undoOf}`
  if (sets === 'disposition') return `to ${disposition}`
  return assignee === null ? 'unassign' : `assign to ${assignee}`
}

const toJobText = (job: BulkJob): string =>
  toFields({
    job_id: job.job_id,
    what: toWhat(job),
    state: job.state,
    alerts: job.total,
    done: job.done,
    changed: job.changed,
    kept: job.undo_of === null ? undefined : job.kept,
  })
