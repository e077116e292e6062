/** `GET /v1/di/phones/{phone_id}`: a phone with its installs, users and alerts. */
import { z } from 'zod'
import { alertSchema } from '#shared/core/alerts/alert-schema.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { toPhone } from '#shared/core/identity/phone-answer.ts'
import { phonePathSchema, toPhoneSchema } from '#shared/core/identity/phone-schemas.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type { ZodApp } from '#shared/io/http/openapi.ts'
import type { PhoneAlerts } from '#shared/io/identity/phone-alerts.ts'
import type { PhoneStore } from '#shared/io/identity/phone-store.ts'
import { phoneExample } from '../openapi/examples.ts'

export type PhoneRouteDeps = Pick<PhoneStore, 'readPhone'> & PhoneAlerts

const phoneSchema = toPhoneSchema(alertSchema)
  .meta({ description: 'A phone: the installs on the same hardware.' })
  .meta({ id: 'Phone' })

/** Adds the route. */
export function addPhoneRoutes(app: ZodApp, deps: PhoneRouteDeps): void {
  app.get(
    '/v1/di/phones/:phone_id',
    {
      schema: {
        operationId: 'findPhone',
        conditional: true,
        tags: ['Phones'],
        summary: 'One phone: its installs, users and alerts',
        description:
          'A `device_id` names an install, a `phone_id` the hardware: installs that the service recognised as one phone, or that an analyst joined. Every 50 installs, users and alerts count as one call of the tenant’s rate.',
        params: phonePathSchema,
        querystring: z.strictObject({}),
        problems: ['phone_not_found'],
        response: { 200: phoneSchema },
        example: phoneExample,
      },
    },
    async ({ params: { phone_id: phoneId }, caller: { tenantId, chargeRows } }) => {
      const phone = await deps.readPhone({ tenantId, phoneId }).catch(reject)
      if (phone === null) throw new Problem('phone_not_found', 'No install is on this phone.')
      const deviceIds = phone.installs.map(({ deviceId }) => deviceId)
      const { alerts, total } = await deps.listPhoneAlerts({ tenantId, deviceIds })
      chargeRows(phone.installs.length + phone.users.length + alerts.length)
      return { ...toPhone(phone), alerts, alerts_total: total }
    },
  )
}

const reject = rejectUnavailable('Phones cannot be read at the moment.')
