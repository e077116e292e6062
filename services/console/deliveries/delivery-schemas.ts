/** Schemas of deliveries and of the webhook's state. */
import { z } from 'zod'
import { deliverySchema } from '#shared/core/deliveries/delivery-schema.ts'
import { deliveryStates } from '#shared/core/deliveries/delivery-states.ts'
import { deliveryEvents, riskAlert, webhookEvents } from '#shared/core/deliveries/webhook-events.ts'
import { instantParameter } from '#shared/core/http/api-schemas.ts'
import { pageQuery, pageSchema } from '../http/paging.ts'
import { tenantIdSchema } from '../http/schemas.ts'

const alertIdSchema = z.string().min(1).max(64)

export const deliveryParams = z.object({
  tenant_id: tenantIdSchema,
  delivery_id: z.string().min(1).max(64),
})

export const listDeliveriesQuery = z.strictObject({
  state: z.enum(deliveryStates).optional(),
  alert_id: alertIdSchema.optional(),
  event: z.enum(deliveryEvents).optional().describe('deliveries of this kind'),
  ...pageQuery(500, 50),
})

export const deliveriesSchema = pageSchema(deliverySchema)

export const replayBody = z
  .strictObject({
    alert_id: alertIdSchema
      .optional()
      .describe('the deliveries of this alert: as it was raised, and its updates'),
    since: instantParameter('Deliveries created at this instant or later.'),
    failed: z.boolean().default(false).describe('only failed and skipped deliveries'),
  })
  .refine(
    ({ alert_id, since, failed }) =>
      alert_id === undefined ? since !== undefined || failed : since === undefined && !failed,
    'must be alert_id, or since, or failed, or the last two together',
  )
  .meta({ examples: [{ since: '2026-03-01T00:00:00Z' }, { failed: true }] })

export const replayCountQuery = z.strictObject({
  since: instantParameter('Deliveries created at this instant or later.'),
  failed: z
    .enum(['true', 'false'])
    .default('false')
    .describe('`true` counts only failed and skipped deliveries'),
})

export const replayCountSchema = z.object({ tenant_id: z.string(), count: z.number().int() })

export const deliveryRequestSchema = z.object({
  delivery_id: z.string(),
  headers: z
    .record(z.string(), z.string())
    .describe('those that all attempts share; signatures are made for each attempt and not kept'),
  body: z.string().describe('the bytes that are sent, as text'),
})

export const replayedSchema = z.object({
  tenant_id: z.string(),
  replayed: z.number().int().describe('how many deliveries are due now'),
  data: z.array(deliverySchema).describe('the first 50 deliveries'),
})

export const webhookEventsBody = z.strictObject({
  events: z
    .array(z.enum(webhookEvents, `must be one of ${webhookEvents.join(', ')}`))
    .min(1)
    .max(webhookEvents.length)
    .refine((events) => events.includes(riskAlert), `must have ${riskAlert}: it is always sent`)
    .describe('`alert.updated`: an alert again whenever its disposition changes'),
})

export const webhookEventsSchema = z.object({
  tenant_id: z.string(),
  webhook_url: z.string().nullable(),
  webhook_events: z.array(z.enum(webhookEvents)),
})

export const webhookStateSchema = z.object({
  tenant_id: z.string(),
  webhook_url: z.string().nullable(),
  webhook_state: z.enum(['on', 'off', 'paused']),
})
