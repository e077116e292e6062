/** Bulk changes of alerts, by filter or by selection: begin, list, watch, cancel, undo. */

import { randomUUID } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { bulkJobSchema } from '#shared/core/alerts/alert-work-schemas.ts'
import { bulkJobsListedMax, bulkJobsRunningMax } from '#shared/core/base/limits/alerts.ts'
import { Problem } from '#shared/core/http/problem.ts'
import {
  cancelBulkJob,
  findBulkJob,
  listBulkJobs,
  startBulkJob,
} from '#shared/io/alerts/bulk/bulk-job-store.ts'
import { startBulkUndo, type UndoRefusal } from '#shared/io/alerts/bulk/undo-bulk-job.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { actorOf, type ConsoleApp, tenantsOf } from '../http/admin-app.ts'
import { changeOnce } from '../http/answer-once.ts'
import { idSchema, limitSchema, tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import {
  type BulkWanted,
  bulkAssignBody,
  bulkDispositionBody,
  toBulkWanted,
} from './bulk-schemas.ts'
import type { AlertReads } from './read-alerts.ts'

const jobParams = z.object({ job_id: idSchema })
const jobsSchema = z.object({ data: z.array(bulkJobSchema).describe('newest first') })

const jobNotFound = () => new Problem('bulk_job_not_found', 'There is no such job.')
export const newJobId = () => `blk_${randomUUID()}`

export const tooManyJobs = `A tenant has at most ${bulkJobsRunningMax} jobs at once.`
export const undoRefusals: Record<UndoRefusal, string> = {
  running: 'The job is still running: cancel it first.',
  is_undo: 'The job is an undo itself.',
  undone: 'The job is undone already, or is being undone.',
  nothing_changed: 'The job changed nothing.',
  busy: tooManyJobs,
}

type BulkDeps = { postgres: Postgres } & Pick<AlertReads, 'countMatching'>

/** Adds the routes. */
export function addBulkRoutes(app: ConsoleApp, deps: BulkDeps): void {
  addStarts(app, deps)
  addReads(app, deps)
  addEnds(app, deps)
}

function addStarts(app: ConsoleApp, { postgres, countMatching }: BulkDeps): void {
  const start = async (
    tenantId: string,
    exchange: { request: FastifyRequest; reply: FastifyReply },
    wanted: BulkWanted,
  ): Promise<FastifyReply> => {
    await requireTenant(postgres, tenantId)
    const { filter, alert_ids: alertIds = [], expected_count: expectedCount } = wanted
    // Before the call takes a connection, since a count waits for one of its own.
    const target =
      filter === undefined
        ? { alertIds }
        : { filter, matching: await countMatching({ tenantId, filter }) }
    const job = await changeOnce(postgres, exchange, async (db) => {
      const begun = await startBulkJob(db, {
        jobId: newJobId(),
        tenantId,
        target,
        change: wanted.change,
        note: wanted.note,
        actor: actorOf(exchange.request.principal),
        expectedCount,
        runningMax: bulkJobsRunningMax,
      })
      if (begun === 'busy') throw new Problem('conflict', tooManyJobs)
      if (typeof begun !== 'number') return begun
      throw new Problem('conflict', `${begun} alerts match now, not ${expectedCount}.`)
    })
    return exchange.reply.code(202).send(job)
  }
  const description =
    'Begins a job that goes on in the server. Nothing begins unless exactly `expected_count` alerts are meant.'
  app.post(
    '/tenants/:tenant_id/alerts/bulk-disposition',
    {
      schema: {
        operationId: 'setDispositions',
        idempotency: 'kept',
        tags: ['Alerts'],
        summary: 'Set the disposition of all alerts of a filter or a selection',
        description,
        params: tenantParams,
        body: bulkDispositionBody,
        problems: ['conflict'],
        response: { 202: bulkJobSchema },
      },
    },
    async (request, reply) => {
      const { params, body } = request
      return start(params.tenant_id, { request, reply }, toBulkWanted(body))
    },
  )
  app.post(
    '/tenants/:tenant_id/alerts/bulk-assign',
    {
      schema: {
        operationId: 'assignAlerts',
        idempotency: 'kept',
        tags: ['Alerts'],
        summary: 'Assign all alerts of a filter or a selection, or unassign them',
        description,
        params: tenantParams,
        body: bulkAssignBody,
        problems: ['conflict'],
        response: { 202: bulkJobSchema },
      },
    },
    async (request, reply) => {
      const { params, body } = request
      return start(params.tenant_id, { request, reply }, toBulkWanted(body))
    },
  )
}

function addReads(app: ConsoleApp, { postgres }: BulkDeps): void {
  app.get(
    '/tenants/:tenant_id/bulk-jobs',
    {
      schema: {
        operationId: 'listBulkJobs',
        tags: ['Alerts'],
        summary: 'The newest bulk changes of a tenant; they are kept for 30 days',
        params: tenantParams,
        querystring: z.strictObject({ limit: limitSchema(bulkJobsListedMax, 50) }),
        response: { 200: jobsSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { limit } }) => {
      await requireTenant(postgres, tenantId)
      return { data: await listBulkJobs(postgres, { tenantId, limit }) }
    },
  )
  app.get(
    '/bulk-jobs/:job_id',
    {
      schema: {
        operationId: 'findBulkJob',
        conditional: true,
        tags: ['Alerts'],
        summary: 'The progress of a bulk change',
        params: jobParams,
        problems: ['bulk_job_not_found'],
        response: { 200: bulkJobSchema },
      },
    },
    async ({ params, principal }) => {
      const of = { jobId: params.job_id, scope: tenantsOf(principal) }
      const job = await findBulkJob(postgres, of)
      if (job === null) throw jobNotFound()
      return job
    },
  )
}

function addEnds(app: ConsoleApp, { postgres }: BulkDeps): void {
  app.post(
    '/bulk-jobs/:job_id/cancel',
    {
      schema: {
        operationId: 'cancelBulkJob',
        tags: ['Alerts'],
        summary: 'Cancel a bulk change; what it changed stays',
        params: jobParams,
        problems: ['bulk_job_not_found'],
        response: { 200: bulkJobSchema },
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
  app.post(
    '/bulk-jobs/:job_id/undo',
    {
      schema: {
        operationId: 'undoBulkJob',
        idempotency: 'kept',
        tags: ['Alerts'],
        summary: 'Undo a bulk change that has ended',
        description:
          'Begins a job that puts each alert back to what it was before. Alerts that were changed again since stay, and are counted in `kept`. A job is undone once; an undo that was cancelled can be continued by another call.',
        params: jobParams,
        problems: ['bulk_job_not_found', 'conflict'],
        response: { 202: bulkJobSchema },
      },
    },
    async (request, reply) => {
      const { params, principal } = request
      const begun = await changeOnce(postgres, { request, reply }, async (tx) => {
        const job = await startBulkUndo(tx, {
          jobId: newJobId(),
          undoOf: params.job_id,
          scope: tenantsOf(principal),
          actor: actorOf(principal),
          runningMax: bulkJobsRunningMax,
        })
        if (job === null) throw jobNotFound()
        if (typeof job === 'string') throw new Problem('conflict', undoRefusals[job])
        return job
      })
      return reply.code(202).send(begun)
    },
  )
}
