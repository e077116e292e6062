/** Routes of a tenant's apps, whose evidence counts. */
import { z } from 'zod'
import {
  appIdSchema,
  appPlatforms,
  newAppSchema,
  shownAppSchema,
} from '#shared/core/installs/tenant-apps.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { type AppDeps, listTenantApps, putTenantApp, removeTenantApp } from './manage-apps.ts'

const appPath = tenantParams.extend({ platform: z.enum(appPlatforms), app_id: appIdSchema })

const appOfTenantSchema = shownAppSchema.extend({ tenant_id: z.string() })

/** Adds the routes. */
export function addAppRoutes(app: ConsoleApp, deps: AppDeps): void {
  app.get(
    '/tenants/:tenant_id/apps',
    {
      schema: {
        operationId: 'listApps',
        tags: ['Attestation'],
        summary: 'List the apps of a tenant, without keys',
        params: tenantParams,
        response: { 200: z.object({ tenant_id: z.string(), data: z.array(shownAppSchema) }) },
      },
    },
    async ({ params }) => listTenantApps(deps, params.tenant_id),
  )
  app.put(
    '/tenants/:tenant_id/apps',
    {
      schema: {
        operationId: 'putApp',
        tags: ['Attestation'],
        summary: 'Add an app, or replace the one of this platform and id',
        description:
          'Evidence of a phone is verified when it comes from one of these apps; a tenant without ' +
          'apps verifies none. The keys of the Play Console are sealed and never shown again. ' +
          'It returns once every edge judges by it.',
        params: tenantParams,
        body: newAppSchema,
        problems: ['conflict'],
        response: { 200: appOfTenantSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, body, principal }) =>
      putTenantApp(deps, { tenantId, actor: actorOf(principal) }, body),
  )
  app.delete(
    '/tenants/:tenant_id/apps/:platform/:app_id',
    {
      schema: {
        operationId: 'removeApp',
        tags: ['Attestation'],
        summary: 'Remove an app; returns once no edge verifies evidence of it',
        params: appPath,
        problems: ['app_not_found', 'conflict'],
        response: {
          200: z.object({
            tenant_id: z.string(),
            platform: z.enum(appPlatforms),
            id: z.string(),
          }),
        },
      },
    },
    async ({ params: { tenant_id: tenantId, platform, app_id: id }, principal }) =>
      removeTenantApp(deps, { tenantId, actor: actorOf(principal) }, { platform, id }),
  )
}
