/** Schemas of phones and of their corrections in the admin API. */
import { z } from 'zod'
import { operatorAlertSchema } from '#shared/core/alerts/alert-schema.ts'
import { verdictCountsSchema } from '#shared/core/alerts/alert-work-schemas.ts'
import { correctionsShownMax, phoneAlertsShownMax } from '#shared/core/base/limits/entities.ts'
import { noteCharactersMax } from '#shared/core/base/limits/http.ts'
import { operatorText } from '#shared/core/http/operator-text.ts'
import { phoneFields, phoneIdSchema, phonePathSchema } from '#shared/core/identity/phone-schemas.ts'
import { idSchema } from '#shared/core/telemetry/submission.ts'
import { tenantIdSchema, tenantParams } from '../http/schemas.ts'

export const phoneParams = z.object({ tenant_id: tenantIdSchema, ...phonePathSchema.shape })

export const correctionParams = tenantParams.extend({
  correction_id: z
    .string()
    .regex(/^phc_[A-Za-z0-9_-]{22}$/, 'must be phc_ and 22 characters')
    .describe('a `correction_id`'),
})

export const correctionBody = z.strictObject({
  device_id: idSchema.describe('the install'),
  phone_id: phoneIdSchema
    .nullable()
    .describe('the phone that it is on; null splits it off: it becomes a phone of its own'),
  reason: operatorText(noteCharactersMax).refine((text) => text !== '', 'must not be empty'),
  expected_phone_id: phoneIdSchema
    .optional()
    .describe('the phone that you last saw it on: when that changed, nothing is set; 409'),
})

export const correctionSchema = z
  .object({
    correction_id: z.string(),
    device_id: z.string(),
    from_phone_id: z.string().describe('the phone that the service decided'),
    phone_id: z.string(),
    kind: z.enum(['join', 'split']),
    reason: z.string(),
    by: z.string().describe('an operator’s email, or `admin`'),
    at: z.string(),
    undone_by: z.string().nullable(),
    undone_at: z.string().nullable(),
    in_force: z
      .boolean()
      .describe('whether it is the one that counts for the install, which can be undone'),
  })
  .meta({ id: 'PhoneCorrection' })

export const phonePageSchema = z.object({
  phone: z.object(phoneFields),
  alerts: z.object({
    total: z.int(),
    verdicts: verdictCountsSchema,
    data: z.array(operatorAlertSchema).describe(`the newest ${phoneAlertsShownMax}`),
  }),
  corrections: z
    .array(correctionSchema)
    .describe(
      `of its installs, and of those that were on it; newest first, the latest ${correctionsShownMax}`,
    ),
})
