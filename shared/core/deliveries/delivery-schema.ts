/** The shape of a delivery as operators see it, with its attempts. */
import { z } from 'zod'
import { deliveryStates } from './delivery-states.ts'
import { deliveryEvents } from './webhook-events.ts'

const attemptSchema = z.object({
  attempt: z.number().int().describe('from 1; replays continue the count'),
  at: z.string(),
  duration_ms: z.number().int(),
  status: z.number().int().nullable().describe('null without a response'),
  error_kind: z
    .string()
    .nullable()
    .describe(
      'null on success; status, timeout, dns, connect, tls, reset, protocol or refused_address',
    ),
  error: z.string().nullable(),
  address: z.string().nullable().describe('the address of the connection'),
  answer: z.string().nullable().describe('the first 4 KiB of the response'),
})

export const deliverySchema = z
  .object({
    delivery_id: z.string(),
    tenant_id: z.string(),
    alert_id: z.string().nullable().describe('null for a test event'),
    event: z.string().describe(`what it tells: ${deliveryEvents.join(', ')}`),
    state: z.enum(deliveryStates),
    reason: z.string().nullable().describe('why it ended undelivered'),
    created_at: z.string(),
    due_at: z.string().nullable().describe('the next attempt; null when it has ended'),
    ended_at: z.string().nullable(),
    attempts: z.array(attemptSchema),
  })
  .meta({ id: 'Delivery' })
/** A delivery as operators see it. Times are ISO-8601. */
export type Delivery = z.infer<typeof deliverySchema>
