/**
 * Continues bulk changes of alerts: each step is of the job that has waited longest, so a small job
 * does not wait for a large one. Any console does any step, under a lease. A stop ends after the
 * present step.
 */
import { stepBulkJob } from '#shared/io/alerts/bulk/bulk-job-steps.ts'
import { leaseBulkJob } from '#shared/io/alerts/bulk/bulk-job-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import { pause } from '#shared/io/process/pause.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'

/** How often a console looks for jobs: a new one begins within this time. */
const pollMs = 500
/** Between two steps the scorer and operators get at the tenant's alerts. */
const stepPauseMs = 20

/** Starts the job of one console. */
export function startBulkJobs(deps: { postgres: Postgres; log: Log }): Poller {
  const { postgres, log } = deps
  return startPolling(
    async (signal) => {
      for (;;) {
        const jobId = signal.aborted ? null : await leaseBulkJob(postgres)
        if (jobId === null) return
        await stepBulkJob(postgres, jobId)
        await pause(stepPauseMs, signal)
      }
    },
    { log, everyMs: pollMs, failure: 'bulk changes of alerts cannot continue' },
  )
}
