/** The route of a tenant's retention periods. */
import { z } from 'zod'
import {
  type RetainedKind,
  type RetentionSetting,
  retentionDaysMax,
} from '#shared/core/tenants/retention.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { tenantParams, tenantSchema } from '../http/schemas.ts'
import { setTenantRetention } from './manage-retention.ts'

const settingSchema = z
  .union([z.number().int().min(1).max(retentionDaysMax), z.enum(['default', 'forever'])], {
    error: `must be a number of days from 1 to ${retentionDaysMax}, "default" or "forever"`,
  })
  .optional()
  .describe('without the field nothing changes')

export const retentionBody = z.strictObject({
  events: settingSchema,
  alerts: settingSchema,
  deliveries: settingSchema,
})

/** Adds the route. */
export function addRetentionRoutes(app: ConsoleApp, deps: { postgres: Postgres }): void {
  app.put(
    '/tenants/:tenant_id/retention',
    {
      schema: {
        operationId: 'setRetention',
        tags: ['Tenants'],
        summary: 'Set how many days events, alerts and deliveries of a tenant are kept',
        description: 'Older data is removed within minutes and cannot be restored.',
        params: tenantParams,
        body: retentionBody,
        problems: ['conflict'],
        response: { 200: tenantSchema },
      },
    },
    async ({ params, body, principal }) => {
      return setTenantRetention(deps, {
        tenantId: params.tenant_id,
        actor: actorOf(principal),
        settings: toRetentionSettings(body),
      })
    },
  )
}

/** The periods that a body sets. */
export const toRetentionSettings = ({
  events,
  alerts,
  deliveries,
}: z.infer<typeof retentionBody>): Partial<Record<RetainedKind, RetentionSetting>> => ({
  ...(events === undefined ? {} : { events }),
  ...(alerts === undefined ? {} : { alerts }),
  ...(deliveries === undefined ? {} : { deliveries }),
})
