/** Saved views of the pages of a tenant: cases, alerts, events and SQL. */
import { z } from 'zod'
import { includesRole } from '#shared/core/operators/roles.ts'
import {
  savedViewBody,
  savedViewPath,
  savedViewSchema,
  savedViewsQuery,
  savedViewsSchema,
} from '#shared/core/operators/saved-view-schemas.ts'
import { listSavedViews, removeView, saveView } from '#shared/io/operators/saved-view-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { actorOf, type ConsoleApp, type Principal } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

/** Adds the routes. */
export function addSavedViewRoutes(app: ConsoleApp, { postgres }: { postgres: Postgres }): void {
  app.get(
    '/tenants/:tenant_id/saved-views',
    {
      schema: {
        operationId: 'listSavedViews',
        tags: ['Saved views'],
        summary: 'Your saved views of a tenant, and those that others share',
        params: tenantParams,
        querystring: savedViewsQuery,
        response: { 200: savedViewsSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { kind }, principal }) => {
      await requireTenant(postgres, tenantId)
      const operator = actorOf(principal)
      return { data: await listSavedViews(postgres, { tenantId, operator, kind }) }
    },
  )
  app.post(
    '/tenants/:tenant_id/saved-views',
    {
      schema: {
        operationId: 'saveView',
        tags: ['Saved views'],
        summary: 'Save a view under a name; your view of the same kind and name is replaced',
        params: tenantParams,
        body: savedViewBody,
        problems: ['conflict'],
        response: { 201: savedViewSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, body, principal }, reply) => {
      await requireTenant(postgres, tenantId)
      const wanted = { tenantId, operator: actorOf(principal), view: body }
      return reply.code(201).send(await saveView(postgres, wanted))
    },
  )
  app.delete(
    '/tenants/:tenant_id/saved-views/:view_id',
    {
      schema: {
        operationId: 'removeView',
        tags: ['Saved views'],
        summary: 'Remove a view of yours; an admin removes any that is shared',
        params: tenantParams.extend(savedViewPath.shape),
        problems: ['saved_view_not_found'],
        response: { 200: z.object({ view_id: z.string() }) },
      },
    },
    async ({ params: { tenant_id: tenantId, view_id: viewId }, principal }) => {
      await requireTenant(postgres, tenantId)
      const operator = actorOf(principal)
      await removeView(postgres, { tenantId, viewId, operator, isAdmin: isAdmin(principal) })
      return { view_id: viewId }
    },
  )
}

const isAdmin = (principal: Principal | null): boolean =>
  principal?.kind === 'token' ||
  (principal?.kind === 'operator' && includesRole(principal.operator.role, 'admin'))
