/** Bulk changes of alerts as proposals: how many alerts are meant now, and carrying them out. */

import type { AlertFilter } from '#shared/core/alerts/alert-filters.ts'
import type { TypedProposal } from '#shared/core/approvals/describe-proposal.ts'
import { isWithinMargin } from '#shared/core/approvals/four-eyes.ts'
import { bulkJobsRunningMax } from '#shared/core/base/limits/alerts.ts'
import { Problem } from '#shared/core/http/problem.ts'
import {
  type BulkChange,
  type BulkTarget,
  countSelected,
  startBulkJob,
} from '#shared/io/alerts/bulk/bulk-job-store.ts'
import { startBulkUndo } from '#shared/io/alerts/bulk/undo-bulk-job.ts'
import type { Approval } from '#shared/io/approvals/claim-change.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { newJobId, tooManyJobs, undoRefusals } from '../alerts/bulk-routes.ts'
import type { AlertReads } from '../alerts/read-alerts.ts'
import { BaseChanged } from './base-changed.ts'

type BulkDeps = { postgres: Postgres } & Pick<AlertReads, 'countMatching'>
type Which = { filter?: unknown; alert_ids?: readonly string[] | undefined }

async function findTarget(
  { postgres, countMatching }: BulkDeps,
  tenantId: string,
  { filter, alert_ids: alertIds = [] }: Which,
): Promise<{ target: BulkTarget; total: number }> {
  if (filter === undefined) {
    return { target: { alertIds }, total: await countSelected(postgres, { tenantId, alertIds }) }
  }
  const asked = { tenantId, filter: filter as AlertFilter }
  const matching = await countMatching(asked)
  return { target: { filter: asked.filter, matching }, total: matching.total }
}

/** How many alerts a bulk change means now. */
export const countMeant = async (deps: BulkDeps, tenantId: string, which: Which): Promise<number> =>
  (await findTarget(deps, tenantId, which)).total

type ToCarryOut = { tenantId: string; author: string; approval: Approval }

/** @throws BaseChanged when more alerts came or went than the margin allows */
export async function carryOutBulk(
  deps: BulkDeps,
  wanted: ToCarryOut & { proposed: Extract<TypedProposal, { kind: 'bulk' }> },
) {
  const { tenantId, author, approval, proposed } = wanted
  const { parameters, base } = proposed
  const { target, total } = await findTarget(deps, tenantId, parameters)
  if (!isWithinMargin(base.alerts, total)) {
    throw new BaseChanged(`${total} alerts match now, not ${base.alerts}.`)
  }
  const job = await startBulkJob(deps.postgres, {
    jobId: newJobId(),
    tenantId,
    target,
    approval,
    change: parameters.change as BulkChange,
    note: parameters.note,
    // Each step checks that its author may still do it.
    actor: author,
    expectedCount: total,
    runningMax: bulkJobsRunningMax,
  })
  if (job === 'busy') throw new Problem('conflict', tooManyJobs)
  if (typeof job !== 'number') return job
  throw new Problem('conflict', `${job} alerts match now. Approve it again.`)
}

/** @throws BaseChanged when the job cannot be undone any more */
export async function carryOutUndo(deps: BulkDeps, wanted: ToCarryOut & { jobId: string }) {
  const { tenantId, author, approval, jobId } = wanted
  const job = await startBulkUndo(deps.postgres, {
    jobId: newJobId(),
    undoOf: jobId,
    approval,
    scope: [tenantId],
    actor: author,
    runningMax: bulkJobsRunningMax,
  })
  if (job === 'busy') throw new Problem('conflict', tooManyJobs)
  if (job === null) throw new BaseChanged('The bulk change is not kept any more.')
  if (typeof job === 'string') throw new BaseChanged(undoRefusals[job])
  return job
}
