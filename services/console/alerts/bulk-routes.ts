/** Changing the disposition of all alerts that a filter matches: begin, watch, cancel. */
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { dispositions } from '#shared/core/alerts/alert-rules.ts'
import { bulkJobsRunningMax } from '#shared/core/base/limits/alerts.ts'
import { noteCharactersMax } from '#shared/core/base/limits/http.ts'
import { operatorText } from '#shared/core/http/operator-text.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { cancelBulkJob, findBulkJob, startBulkJob } from '#shared/io/alerts/bulk-job-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { actorOf, type ConsoleApp, tenantsOf } from '../http/admin-app.ts'
import { idSchema, tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import { adminAlertsQuery } from './alert-schemas.ts'
import type { AlertReads } from './read-alerts.ts'

const filterSchema = adminAlertsQuery
  .omit({ limit: true, cursor: true })
  .describe('the parameters of the list as texts, such as {"disposition": "OPEN,REVIEWED"}')

const bulkBody = z.strictObject({
  filter: filterSchema,
  disposition: z.enum(dispositions),
  note: operatorText(noteCharactersMax).nullish(),
  expected_count: z.int().min(0).describe('`total` of the list with this filter'),
})

const jobSchema = z.object({
  job_id: z.string(),
  tenant_id: z.string(),
  disposition: z.enum(dispositions),
  note: z.string().nullable(),
  actor: z.string(),
  state: z.enum(['running', 'done', 'cancelled']),
  total: z.int().describe('alerts that matched when it began'),
  done: z.int().describe('alerts looked at; fewer than `total` where others changed some first'),
  changed: z.int().describe('alerts whose disposition it changed'),
  created_at: z.string(),
  ended_at: z.string().nullable(),
})

const jobParams = z.object({ job_id: idSchema })

const jobNotFound = () => new Problem('bulk_job_not_found', 'There is no such job.')

/** Adds the routes. */
export function addBulkRoutes(
  app: ConsoleApp,
  { postgres, countMatching }: { postgres: Postgres } & Pick<AlertReads, 'countMatching'>,
): void {
  app.post(
    '/tenants/:tenant_id/alerts/bulk-disposition',
    {
      schema: {
        summary: 'Set the disposition of all alerts that a filter matches',
        description:
          'Begins a job that goes on in the server. Nothing begins unless exactly `expected_count` alerts match.',
        params: tenantParams,
        body: bulkBody,
        problems: ['conflict'],
        response: { 202: jobSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, body, principal }, reply) => {
      await requireTenant(postgres, tenantId)
      const job = await startBulkJob(postgres, {
        jobId: `blk_${randomUUID()}`,
        tenantId,
        filter: body.filter,
        disposition: body.disposition,
        note: body.note ?? null,
        actor: actorOf(principal),
        expectedCount: body.expected_count,
        runningMax: bulkJobsRunningMax,
        count: countMatching,
      })
      if (job === 'busy') {
        throw new Problem('conflict', `A tenant has at most ${bulkJobsRunningMax} jobs at once.`)
      }
      if (typeof job !== 'number') return reply.code(202).send(job)
      throw new Problem('conflict', `${job} alerts match now, not ${body.expected_count}.`)
    },
  )
  app.get(
    '/bulk-jobs/:job_id',
    {
      schema: {
        summary: 'The progress of a bulk change',
        params: jobParams,
        problems: ['bulk_job_not_found'],
        response: { 200: jobSchema },
      },
    },
    async ({ params, principal }) => {
      const of = { jobId: params.job_id, scope: tenantsOf(principal) }
      const job = await findBulkJob(postgres, of)
      if (job === null) throw jobNotFound()
      return job
    },
  )
  app.post(
    '/bulk-jobs/:job_id/cancel',
    {
      schema: {
        summary: 'Cancel a bulk change; what it changed stays',
        params: jobParams,
        problems: ['bulk_job_not_found'],
        response: { 200: jobSchema },
      },
    },
    async ({ params, principal }) => {
      const scope = tenantsOf(principal)
      const wanted = { jobId: params.job_id, scope, actor: actorOf(principal) }
      const job = await cancelBulkJob(postgres, wanted)
      if (job === null) throw jobNotFound()
      return job
    },
  )
}
