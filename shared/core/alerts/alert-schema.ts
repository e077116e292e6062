/** The shape of an alert: in the REST API and in webhooks, and with what operators see beside it. */
import { z } from 'zod'
import { alertsPageMax } from '#shared/core/base/limits/rest-api.ts'
import {
  dispositionSchema,
  flagSchema,
  instantSchema,
  reasonObjectSchema,
  riskSchema,
} from '#shared/core/http/field-schemas.ts'
import { severities } from '#shared/core/scoring/score.ts'
import { decisions } from './dispositions.ts'

export const alertSchema = z
  .object({
    alert_id: z
      .string()
      .meta({ description: 'Opaque.', examples: ['alr_4mPs_cj1Qjk-Ovhjwc-EHurODL'] }),
    tenant_id: z.string(),
    event_id: z.string().meta({ description: 'The event that raised the alert.' }),
    seq: z.int().min(1).meta({
      description: 'The place among the tenant’s alerts: ascending, without a gap.',
    }),
    decision: z.object({
      action: z.enum(decisions),
      severity: z.enum(severities).meta({
        description: 'From `risk_score`: LOW below 40, MEDIUM to 59, HIGH to 79, CRITICAL from 80.',
      }),
      risk_score: riskSchema.meta({
        description: '`rasp_score`, raised by the device’s history.',
      }),
    }),
    rasp_score: riskSchema.meta({ description: 'The score of the signals alone.' }),
    entity: z.object({
      device: z.object({ device_id: z.string() }),
      session: z.object({ session_id: z.string() }),
      user: z.object({ user_id: z.string() }).optional().meta({
        description: 'Present where the telemetry named a user or an account.',
      }),
    }),
    flags: z.array(flagSchema).meta({ description: 'The codes of `reasons`.' }),
    reasons: z.array(reasonObjectSchema),
    disposition: dispositionSchema,
    created_at: instantSchema,
  })
  .meta({
    description:
      'A risky device; there is one alert per device, session and action. REST and webhook have the same object.',
  })
  .meta({ id: 'Alert' })
/** An alert as clients see it, in the REST API and in webhooks. */
export type Alert = z.output<typeof alertSchema>

/** An alert as operators see it. */
export const operatorAlertSchema = alertSchema.extend({
  assignee: z.string().nullable().describe('the email of an operator'),
  notes: z.int().min(0).describe('how many notes it has'),
})
export type OperatorAlert = z.output<typeof operatorAlertSchema>

export const alertPageSchema = z
  .object({
    data: z.array(alertSchema).meta({
      description: 'Newest first: by `created_at`, then `alert_id`, both descending.',
    }),
    total: z.int().min(0).meta({
      description: 'The exact number of alerts that match the filters, on all pages.',
    }),
    limit: z.int().min(1).max(alertsPageMax).meta({ description: 'The page size in effect.' }),
    next_cursor: z.string().nullable().meta({
      description: 'Pass it as `cursor` for the next page; null on the last one.',
    }),
  })
  .meta({ id: 'AlertPage' })
