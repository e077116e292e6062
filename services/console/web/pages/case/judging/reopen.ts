/**
 * Opens alerts of a case again, and the case with them. A bulk change of the server does it,
 * however many they are, and is listed and undone as such.
 */
import type { QueryClient } from '@tanstack/react-query'
import { type Disposition, dispositions } from '#shared/core/alerts/dispositions.ts'
import { api, ok } from '../../../api/client.ts'
import { type Case, readCaseAgain } from '../case.ts'
import { readQueuesAgain } from '../changes/changes.ts'

const watchMs = 200

type JudgedAlerts = {
  shown: Case
  /** Those that were judged so; left out, all that are judged. */
  disposition?: Disposition
  /** Those that were changed at this instant or later. */
  since?: string | null
  count: number
}

/**
 * @returns how many alerts are open again
 * @throws ApiProblem when other alerts are meant by now
 */
export async function reopenAlerts(
  client: QueryClient,
  { shown, disposition, since = null, count }: JudgedAlerts,
): Promise<number> {
  const { case_id: id, tenant_id: tenant } = shown
  const judged = disposition ?? dispositions.filter((one) => one !== 'OPEN').join(',')
  const filter = {
    case_id: id,
    disposition: judged,
    ...(since === null ? {} : { updated_after: since }),
  }
  const { job_id: jobId } = await ok(
    api.POST('/admin/v1/tenants/{tenant_id}/alerts/bulk-disposition', {
      params: { path: { tenant_id: tenant } },
      body: { disposition: 'OPEN', filter, expected_count: count },
    }),
  )
  for (;;) {
    const job = await ok(
      api.GET('/admin/v1/bulk-jobs/{job_id}', { params: { path: { job_id: jobId } } }),
    )
    if (job.state === 'running') {
      await new Promise((resolve) => setTimeout(resolve, watchMs))
      continue
    }
    await readCaseAgain(client, id)
    readQueuesAgain(client, tenant)
    return job.changed
  }
}
