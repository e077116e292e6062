/** The shape of an alert: in the REST API and in webhooks, and with what operators see beside it. */
import { z } from 'zod'
import { alertHistoryMax, alertsPageMax } from '#shared/core/base/limits/rest-api.ts'
import {
  dispositionSchema,
  flagSchema,
  instantSchema,
  reasonObjectSchema,
  riskPercentileSchema,
  riskSchema,
} from '#shared/core/http/field-schemas.ts'
import { alertPhoneSchema } from '#shared/core/identity/phone-schemas.ts'
import { toConnectionField } from '#shared/core/network/connection-answer.ts'
import { severities } from '#shared/core/scoring/score.ts'
import { actorSchema } from './actor-schema.ts'
import { decisions } from './dispositions.ts'

const contextSchema = (description: string, examples: string[]) =>
  z.string().optional().meta({ description, examples })

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
      phone: alertPhoneSchema.nullable().meta({
        description:
          'The phone that the install was on when the alert was raised; null when nothing told it. Later corrections are in `GET /v1/di/devices/{device_id}`.',
      }),
    }),
    flags: z.array(flagSchema).meta({ description: 'The codes of `reasons`.' }),
    reasons: z.array(reasonObjectSchema),
    disposition: dispositionSchema,
    platform: contextSchema(
      '`android`, `ios` or another, in lower case. Like the next three it is of the event that raised the alert, and present where the telemetry had it.',
      ['android'],
    ),
    sdk_version: contextSchema('The version of the SDK.', ['4.2.0']),
    app_version: contextSchema('The version of the app.', ['12.1.0']),
    device_model: contextSchema('The model of the phone.', ['Pixel 8']),
    connection: toConnectionField('The network that the event which raised the alert came from.'),
    created_at: instantSchema,
    updated_at: instantSchema.meta({
      description:
        'The last change of disposition, assignee or notes; `created_at` before the first. It rises with every change of an alert: of two copies the later one is the newer.',
    }),
    assignee: actorSchema.nullable().meta({
      description: 'The operator who works on it; null as long as there is none.',
    }),
  })
  .meta({
    description:
      'A risky device; there is one alert per device, session and action. REST and webhook have the same object.',
  })
  .meta({ id: 'Alert' })
/** An alert as clients see it, in the REST API and in webhooks. */
export type Alert = z.output<typeof alertSchema>

export const dispositionEntrySchema = z
  .object({
    at: instantSchema,
    by: actorSchema,
    from: dispositionSchema,
    to: dispositionSchema,
    note: z.string().nullable(),
  })
  .meta({ description: 'A change of the disposition.' })
  .meta({ id: 'DispositionChange' })
export type DispositionEntry = z.output<typeof dispositionEntrySchema>

/** What more there is of one alert: what people did to it. Lists do not have it. */
const alertDetailsSchema = z
  .object({
    risk_percentile: riskPercentileSchema,
    history: z.array(dispositionEntrySchema).meta({
      description: `The changes of its disposition, oldest first; the newest ${alertHistoryMax}.`,
    }),
    assignments: z
      .array(
        z.object({
          at: instantSchema,
          by: actorSchema,
          from: actorSchema.nullable(),
          to: actorSchema.nullable(),
        }),
      )
      .meta({
        description: `The changes of its assignee, oldest first; the newest ${alertHistoryMax}.`,
      }),
    notes: z
      .array(z.object({ at: instantSchema, by: actorSchema, note: z.string() }))
      .meta({ description: 'The notes of operators, oldest first.' }),
  })
  .meta({ id: 'AlertDetails' })
export type AlertDetails = z.output<typeof alertDetailsSchema>

/** An alert with its details. */
export const alertDetailSchema = alertSchema
  .extend({ details: alertDetailsSchema })
  .meta({ id: 'AlertDetail' })
export type AlertDetail = z.output<typeof alertDetailSchema>

export const listedOutcomeSchema = z
  .object({
    alert_id: z.string(),
    outcome: z.enum(['changed', 'unchanged', 'not_found']).meta({
      description:
        '`unchanged`: it had the disposition already. `not_found`: the tenant has no such alert.',
    }),
  })
  .meta({ id: 'DispositionOutcome' })
/** What a change of many alerts did to one of them. */
export type ListedOutcome = z.output<typeof listedOutcomeSchema>

/** The body of the event `alert.updated`: the alert after the change, and the change. */
export const alertUpdateSchema = alertSchema
  .extend({ details: z.object({ change: dispositionEntrySchema }) })
  .meta({ description: 'An alert whose disposition changed.' })
export type AlertUpdate = z.output<typeof alertUpdateSchema>

/** An alert as operators see it. */
export const operatorAlertSchema = alertSchema.extend({
  assignee: z.string().nullable().describe('the email of an operator'),
  notes: z.int().min(0).describe('how many notes it has'),
  case_id: z
    .string()
    .nullable()
    .describe('the case that it is in; null for a moment after an upgrade'),
})
export type OperatorAlert = z.output<typeof operatorAlertSchema>

export const alertPageSchema = z
  .object({
    data: z.array(alertSchema).meta({
      description:
        'Newest first: by `created_at`, then `alert_id`, both descending. With `after_seq` by `seq`, ascending.',
    }),
    total: z.int().min(0).meta({
      description: 'The exact number of alerts that match the filters, on all pages.',
    }),
    limit: z.int().min(1).max(alertsPageMax).meta({ description: 'The page size in effect.' }),
    next_cursor: z.string().nullable().meta({
      description:
        'Pass it as `cursor` for the next page; null on the last one, and with `after_seq`.',
    }),
  })
  .meta({ id: 'AlertPage' })
