/** What devices, users, sessions and events of a tenant turned out to be. */
import { z } from 'zod'
import { labelsBodyBytesMax } from '#shared/core/base/limits/outcomes.ts'
import { listCodes } from '#shared/core/outcomes/label-codes.ts'
import {
  addedLabelsSchema,
  adminLabelSchema,
  codeMeaningBody,
  labelCodeSchema,
  labelsBody,
  labelsQuery,
  newCodeSchema,
  toLabelPageSchema,
} from '#shared/core/outcomes/label-schemas.ts'
import { declareLabelCode, removeLabelCode } from '#shared/io/outcomes/change-label-codes.ts'
import { addLabels, listLabelsByQuery } from '#shared/io/outcomes/change-labels.ts'
import { readLabelCodes } from '#shared/io/outcomes/label-code-store.ts'
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

const codeParams = tenantParams.extend({ code: newCodeSchema })

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
  app.get(
    '/tenants/:tenant_id/labels/codes',
    {
      schema: {
        operationId: 'listLabelCodes',
        tags: ['Labels'],
        summary: 'List the codes that a label may have, with what each means',
        params: tenantParams,
        response: { 200: z.object({ data: z.array(labelCodeSchema) }) },
      },
    },
    async ({ params: { tenant_id: tenantId } }) => {
      await requireTenant(postgres, tenantId)
      return { data: listCodes(await readLabelCodes(postgres, tenantId)) }
    },
  )
  app.put(
    '/tenants/:tenant_id/labels/codes/:code',
    {
      schema: {
        operationId: 'declareLabelCode',
        tags: ['Labels'],
        summary: 'Declare a code of labels, with what it means',
        description:
          'Labels of other codes are refused. Labels keep the meaning that they were received with, ' +
          'so a code that has some cannot mean something else.',
        params: codeParams,
        body: codeMeaningBody,
        problems: ['conflict'],
        response: { 200: labelCodeSchema },
      },
    },
    async ({ params: { tenant_id: tenantId, code }, body: { means }, principal }) => {
      await requireTenant(postgres, tenantId)
      return declareLabelCode(postgres, { tenantId, code, means, actor: actorOf(principal) })
    },
  )
  app.delete(
    '/tenants/:tenant_id/labels/codes/:code',
    {
      schema: {
        operationId: 'removeLabelCode',
        tags: ['Labels'],
        summary: 'Remove a declared code; its labels stay',
        params: codeParams,
        problems: ['label_code_not_found'],
        response: { 200: z.object({ code: z.string() }) },
      },
    },
    async ({ params: { tenant_id: tenantId, code }, principal }) => {
      await removeLabelCode(postgres, { tenantId, code, actor: actorOf(principal) })
      return { code }
    },
  )
}
