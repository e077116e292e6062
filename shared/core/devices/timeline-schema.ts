/** The entries of a timeline, as the admin API answers them. */
import { z } from 'zod'
import { dispositions } from '#shared/core/alerts/dispositions.ts'
import { deliveryStates } from '#shared/core/deliveries/delivery-states.ts'
import { deliveryEvents } from '#shared/core/deliveries/webhook-events.ts'
import { listKinds, listNames } from '#shared/core/lists/list-entry.ts'
import { actions, severities } from '#shared/core/scoring/score.ts'
import type { TimelineKind } from './timeline.ts'

const entry = <Kind extends TimelineKind, Shape extends z.core.$ZodShape>(
  kind: Kind,
  shape: Shape,
) =>
  z.object({
    kind: z.literal(kind),
    id: z.string().describe('unique among those of its kind'),
    at: z.string(),
    ...shape,
  })

const risk = z.int()
const actionSchema = z.enum(actions)
const alertId = { alert_id: z.string() }
const by = { by: z.string() }

export const timelineEntrySchema = z
  .discriminatedUnion('kind', [
    entry('event', {
      device_id: z.string(),
      session_id: z.string(),
      user_id: z.string().nullable(),
      action: actionSchema,
      risk_score: risk,
      rasp_score: risk,
      flags: z.array(z.string()),
    }),
    entry('signal', {
      device_id: z.string(),
      session_id: z.string(),
      event_id: z.string(),
      signal: z.string(),
      change: z.enum(['appeared', 'went', 'returned']),
    }),
    entry('alert', {
      device_id: z.string(),
      user_id: z.string().nullable(),
      action: actionSchema,
      severity: z.enum(severities),
      risk_score: risk,
      flags: z.array(z.string()),
      disposition: z.enum(dispositions).describe('what it is now'),
    }),
    entry('delivery', {
      ...alertId,
      event: z.enum(deliveryEvents),
      state: z.enum(deliveryStates).describe('what it is now'),
      reason: z.string().nullable().describe('why it ended undelivered'),
    }),
    entry('assignment', {
      ...alertId,
      ...by,
      from: z.string().nullable(),
      to: z.string().nullable(),
    }),
    entry('note', { ...alertId, ...by, note: z.string() }),
    entry('case_note', { case_id: z.string(), ...by, note: z.string() }),
    entry('disposition', {
      ...alertId,
      ...by,
      from: z.enum(dispositions),
      to: z.enum(dispositions),
      note: z.string().nullable(),
    }),
    entry('label', {
      ...by,
      subject_kind: z.enum(['device', 'user']),
      subject_id: z.string(),
      label: z.string(),
      occurred_at: z.string(),
      note: z.string().nullable(),
    }),
    entry('list_entry', {
      ...by,
      list: z.enum(listNames),
      listed_kind: z.enum(listKinds),
      listed_id: z.string(),
      reason: z.string(),
      expires_at: z.string().nullable(),
    }),
    entry('correction', {
      ...by,
      device_id: z.string(),
      phone_id: z.string().describe('the phone that it put the install on'),
      reason: z.string(),
      undone: z.boolean().describe('whether this is its undo'),
    }),
  ])
  .meta({ id: 'TimelineEntry' })

export type TimelineEntry = z.output<typeof timelineEntrySchema>
