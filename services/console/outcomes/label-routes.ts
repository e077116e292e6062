/** What devices, users, sessions and events of a tenant turned out to be. */
import { labelsBodyBytesMax } from '#shared/core/base/limits/outcomes.ts'
import {
  addedLabelsSchema,
  adminLabelSchema,
  labelsBody,
  labelsQuery,
  toLabelPageSchema,
} from '#shared/core/outcomes/label-schemas.ts'
import { addLabels, listLabelsByQuery } from '#shared/io/outcomes/change-labels.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { changeOnce } from '../http/answer-once.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

export type LabelRouteDeps = {
  postgres: Postgres
  /** The wall clock. */
  wallMs: () => number
}

/** Adds the routes. */
export function addLabelRoutes(app: ConsoleApp, { postgres, wallMs }: LabelRouteDeps): void {
  app.get(
    '/tenants/:tenant_id/labels',
    {
      schema: {
        operationId: 'listLabels',
        tags: ['Labels'],
        summary: 'List and filter labels, newest first',
        params: tenantParams,
        querystring: labelsQuery,
        response: { 200: toLabelPageSchema(adminLabelSchema) },
      },
    },
    async ({ params: { tenant_id: tenantId }, query }) => {
      await requireTenant(postgres, tenantId)
      return listLabelsByQuery(postgres, tenantId, query)
    },
  )
  app.post(
    '/tenants/:tenant_id/labels',
    {
      bodyLimit: labelsBodyBytesMax,
      schema: {
        operationId: 'addLabels',
        idempotency: 'kept',
        tags: ['Labels'],
        summary: 'Say what devices, users, sessions or events turned out to be',
        description:
          'One label or a list; all are stored, or none. A label of an event covers its session, one ' +
          'of a session itself, one of a device or user the sessions that began up to ' +
          '`covered_days` before `occurred_at`. What was said of a session comes before what was ' +
          'said of its device or user, and fraud before `legitimate`. The latest label of a subject ' +
          'and `external_id` counts.',
        params: tenantParams,
        body: labelsBody,
        problems: ['conflict'],
        response: { 201: addedLabelsSchema },
      },
    },
    async (request, reply) => {
      const { params, body, principal } = request
      const { tenant_id: tenantId } = params
      await requireTenant(postgres, tenantId)
      const wanted = { tenantId, body, actor: actorOf(principal), nowMs: wallMs() }
      const added = await changeOnce(postgres, { request, reply }, (db) => addLabels(db, wanted))
      return reply.code(201).send(added)
    },
  )
}
