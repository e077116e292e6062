/** Allow and deny lists of a tenant's devices, users and connections. */
import { z } from 'zod'
import {
  addedAdminEntrySchema,
  adminListEntrySchema,
  listEntriesQuery,
  listEntryBody,
  listEntryPath,
  toEntryWarnings,
  toListPageSchema,
} from '#shared/core/lists/list-schemas.ts'
import { addListEntry, dropListEntry, listEntriesByQuery } from '#shared/io/lists/change-lists.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { changeOnce } from '../http/answer-once.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

export type ListRouteDeps = {
  postgres: Postgres
  /** The wall clock. */
  wallMs: () => number
}

/** Adds the routes. */
export function addListRoutes(app: ConsoleApp, { postgres, wallMs }: ListRouteDeps): void {
  app.get(
    '/tenants/:tenant_id/lists',
    {
      schema: {
        operationId: 'listListEntries',
        tags: ['Lists'],
        summary: 'List and filter the entries of the allow and deny lists, newest first',
        params: tenantParams,
        querystring: listEntriesQuery,
        response: { 200: toListPageSchema(adminListEntrySchema) },
      },
    },
    async ({ params: { tenant_id: tenantId }, query }) => {
      await requireTenant(postgres, tenantId)
      return listEntriesByQuery(postgres, tenantId, query)
    },
  )
  app.post(
    '/tenants/:tenant_id/lists',
    {
      schema: {
        operationId: 'addListEntry',
        idempotency: 'kept',
        tags: ['Lists'],
        summary: 'Put a device, a user or a connection on the allow or the deny list',
        description:
          'Every edge acts on it within a second. A device or user that is denied is BLOCK with ' +
          'the flag DENY_LISTED and a risk score of 100; an allowed one is ALLOW with the flag ' +
          'ALLOW_LISTED and a risk score of 0, and raises no alert. So is an event from a denied ' +
          'network, operator or country, by the address that the service sees. An allowed one ' +
          'decides nothing: the event has the flag CONNECTION_ALLOWED, and what the service saw of ' +
          'its connection counts nothing. Deny beats allow. ' +
          '`rasp_score` stays what the signals give, and the test devices of a sandbox keep the ' +
          'action that their id forces. An entry of the same id on the same list is replaced.',
        params: tenantParams,
        body: listEntryBody,
        problems: ['conflict'],
        response: { 201: addedAdminEntrySchema },
      },
    },
    async (request, reply) => {
      const { params, body, principal } = request
      const { tenant_id: tenantId } = params
      await requireTenant(postgres, tenantId)
      const wanted = { tenantId, entry: body, actor: actorOf(principal), nowMs: wallMs() }
      const entry = await changeOnce(postgres, { request, reply }, (db) => addListEntry(db, wanted))
      return reply.code(201).send({ ...entry, ...toEntryWarnings(entry) })
    },
  )
  app.delete(
    '/tenants/:tenant_id/lists/:entry_id',
    {
      schema: {
        operationId: 'removeListEntry',
        tags: ['Lists'],
        summary: 'Remove an entry; every edge acts on it within a second',
        params: tenantParams.extend(listEntryPath.shape),
        problems: ['list_entry_not_found'],
        response: { 200: z.object({ tenant_id: z.string(), entry_id: z.string() }) },
      },
    },
    async ({ params: { tenant_id: tenantId, entry_id: entryId }, principal }) => {
      await requireTenant(postgres, tenantId)
      await dropListEntry(postgres, { tenantId, entryId, actor: actorOf(principal) })
      return { tenant_id: tenantId, entry_id: entryId }
    },
  )
}
