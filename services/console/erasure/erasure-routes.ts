/** The route that erases a device or a user of a tenant. */
import { z } from 'zod'
import { idSchema } from '#shared/core/telemetry/submission.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import type { Erase } from './erase.ts'

const erasureBody = z
  .strictObject({ device_id: idSchema.optional(), user_id: idSchema.optional() })
  .refine(
    (body) => (body.device_id === undefined) !== (body.user_id === undefined),
    'must have one of device_id and user_id',
  )
  .describe('A user is a user_id or an account_id of events.')
  .meta({ examples: [{ device_id: '4f6c1d8e-device' }, { user_id: 'user-1729' }] })

const receiptSchema = z.object({
  tenant_id: z.string(),
  subject: z.object({
    kind: z.enum(['device', 'user']),
    sha256: z.string().describe('of the id, which is not stored'),
  }),
  started_at: z.string(),
  finished_at: z.string(),
  counts: z
    .record(z.string(), z.object({ before: z.number().int(), after: z.number().int() }))
    .describe('by store and its table or stream'),
  kept_mentions: z
    .object({
      events: z
        .number()
        .int()
        .nullable()
        .describe('null when the tenant has too many bodies to search'),
    })
    .describe(
      'Events of other devices or users whose body contains the id in a free field. They are not ' +
        'removed.',
    ),
  notes: z.array(z.string()),
})

export type EraseRouteDeps = { erase: Erase }

/** Adds the route. */
export function addErasureRoutes(app: ConsoleApp, deps: EraseRouteDeps): void {
  app.post(
    '/tenants/:tenant_id/erasures',
    {
      schema: {
        summary: 'Erase a device or a user from every store; returns once nothing is left',
        description:
          'Covers everything accepted before the call. Safe to repeat; another call finishes an ' +
          'interrupted erasure. Erased alerts leave gaps in `seq`.',
        params: tenantParams,
        body: erasureBody,
        problems: ['conflict'],
        response: { 200: receiptSchema },
      },
    },
    async ({ params, body, principal }) => {
      const { device_id: deviceId, user_id: userId } = body
      return deps.erase({
        tenantId: params.tenant_id,
        kind: deviceId === undefined ? 'user' : 'device',
        id: deviceId ?? userId ?? '',
        actor: actorOf(principal),
      })
    },
  )
}
