/** What devices, users, sessions and events turned out to be: add labels, list and filter them. */
import { z } from 'zod'
import { toKeyActor } from '#shared/core/alerts/alert-actors.ts'
import { callsPerLabel, labelsBodyBytesMax } from '#shared/core/base/limits/outcomes.ts'
import { callsPerChange } from '#shared/core/base/limits/rest-api.ts'
import {
  addedLabelsSchema,
  labelCodeSchema,
  labelSchema,
  labelsBody,
  labelsQuery,
  toLabelPageSchema,
} from '#shared/core/outcomes/label-schemas.ts'
import { readOnceCall, sendOnce } from '#shared/io/http/idempotency.ts'
import type { OnceAnswer, OnceCall } from '#shared/io/http/idempotent-answers.ts'
import type { ZodApp } from '#shared/io/http/openapi.ts'
import type { AddLabels, createKeyedLabels } from '#shared/io/outcomes/change-labels.ts'
import { requireScope } from '../http/authenticate.ts'
import {
  addedLabelExample,
  labelCodeExample,
  labelExample,
  newLabelExample,
} from '../openapi/examples.ts'

/** Labels by a key of the tenant. */
export type KeyedLabels = Omit<AddLabels, 'nowMs'> & {
  /** Set for a call with an `Idempotency-Key`. */
  once: OnceCall | null
}

type Labels = ReturnType<typeof createKeyedLabels>
type LabelRouteDeps = Pick<Labels, 'listLabels' | 'listCodes'> & {
  /** Answers once for an `Idempotency-Key`. */
  addLabels: (wanted: KeyedLabels) => Promise<OnceAnswer<Awaited<ReturnType<Labels['addLabels']>>>>
}

/** Adds the routes. */
export function addLabelRoutes(app: ZodApp, deps: LabelRouteDeps): void {
  app.get(
    '/v1/di/labels',
    {
      schema: {
        operationId: 'listLabels',
        tags: ['Labels'],
        summary: 'List and filter labels',
        description:
          'Newest first, by when they were received; a label never changes. Every 50 labels of a page count as one call of the tenant’s rate.',
        querystring: labelsQuery,
        response: { 200: toLabelPageSchema(labelSchema) },
        example: { data: [labelExample], limit: 50, next_cursor: null },
      },
    },
    async ({ query, caller: { tenantId, chargeRows } }) => {
      const page = await deps.listLabels({ tenantId, query })
      chargeRows(page.data.length)
      return page
    },
  )
  app.get(
    '/v1/di/labels/codes',
    {
      schema: {
        operationId: 'listLabelCodes',
        tags: ['Labels'],
        summary: 'List the codes that a label may have',
        description:
          'Those that every tenant has, and those that were declared for yours, with what each means. An operator declares one: `di labels codes add SLUG CODE --means fraud` or `legitimate`.',
        querystring: z.strictObject({}),
        response: { 200: z.object({ data: z.array(labelCodeSchema) }) },
        example: { data: [labelCodeExample] },
      },
    },
    async ({ caller: { tenantId } }) => ({ data: await deps.listCodes({ tenantId }) }),
  )
  app.post(
    '/v1/di/labels',
    {
      bodyLimit: labelsBodyBytesMax,
      config: { calls: callsPerChange },
      schema: {
        operationId: 'addLabels',
        idempotency: 'kept',
        tags: ['Labels'],
        summary: 'Say what devices, users, sessions or events turned out to be',
        description:
          'Needs a key with the scope `labels:write`. One label or a list; all are stored, or none. A label of an event covers its session, one of a session itself, one of a device or user the sessions that began up to `covered_days` before `occurred_at`. What was said of a session comes before what was said of its device or user, and fraud before `legitimate`. The latest label of a subject and `external_id` counts, so a repeat is safe. A call counts as 20 calls of the tenant’s rate, and as half a call for each label.',
        querystring: z.strictObject({}),
        body: labelsBody,
        bodyExample: [newLabelExample],
        problems: ['scope_missing', 'conflict'],
        response: { 201: addedLabelsSchema },
        example: { data: [addedLabelExample] },
      },
    },
    async (request, reply) => {
      const { body, caller } = request
      requireScope(caller, 'labels:write')
      const { tenantId, keyHash, keyName, chargeCalls } = caller
      const actor = toKeyActor(keyName)
      chargeCalls(Math.ceil(callsPerLabel * [body].flat().length))
      const once = readOnceCall(request, { tenantId, actor })
      const added = await deps.addLabels({ tenantId, keyHash, actor, body, once })
      return reply.code(201).send(sendOnce(reply, added))
    },
  )
}
