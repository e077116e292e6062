/**
 * Puts alerts that have no case into one, counts cases for metrics, and forgets changes that
 * streams have told. Alerts are without a case when an older release raised them: before an
 * upgrade, or beside this one during it. Any console does any step; a step is under the lock of the
 * tenant's alerts, so none is done twice.
 */
import { countOpenCases, removeToldChanges } from '#shared/io/cases/case-changes.ts'
import { findCaseless, placeAlerts } from '#shared/io/cases/move-alerts.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { pause } from '#shared/io/process/pause.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'

/** How often a console looks for alerts without a case, and counts. */
const pollMs = 15_000
/** Between two steps the scorer and operators get at the tenant's alerts. */
const stepPauseMs = 20

/** Starts the job of one console. */
export function startCases(deps: { postgres: Postgres; log: Log; metrics: Metrics }): Poller {
  const { postgres, log, metrics } = deps
  const open = metrics.gauge('di_cases_open', 'Open cases of all tenants, snoozed ones included')
  const breached = metrics.gauge('di_cases_breached', 'Open cases that are overdue')
  const placed = metrics.counter(
    'di_cases_alerts_placed_total',
    'Alerts of an older release that were put into a case afterwards',
  )
  return startPolling(
    async (signal) => {
      for (;;) {
        const tenantId = signal.aborted ? null : await findCaseless(postgres)
        if (tenantId === null) break
        placed.inc(await placeAlerts(postgres, tenantId))
        await pause(stepPauseMs, signal)
      }
      await removeToldChanges(postgres)
      const counts = await countOpenCases(postgres)
      open.set(counts.open)
      breached.set(counts.breached)
    },
    { log, everyMs: pollMs, failure: 'alerts cannot be put into cases' },
  )
}
