/** Schemas of shadow policies and of their comparison with the active policy. */
import { z } from 'zod'
import { instantParameter } from '#shared/core/http/api-schemas.ts'
import { outcomeCountsSchema, outcomeMoves, outcomesAsOf } from '../analytics/outcome-schemas.ts'
import { changesSchema, namedChangesSchema } from './change-schemas.ts'
import { policyDocumentSchema, versionNumber } from './policy-schemas.ts'

const versionFields = {
  tenant_id: z.string(),
  version: z.number().int(),
  policy_hash: z.string().nullable().describe('null when the shadow is off'),
  name: z.string().nullable(),
  effective_at: z.string().describe('it decides events received from this instant on'),
  created_at: z.string(),
  created_by: z.string(),
}

export const shadowResultSchema = z
  .object({
    ...versionFields,
    previous_version: z
      .number()
      .int()
      .describe('the previous version; the same if nothing changed, 0 without one'),
  })
  .describe('A shadow policy raises no alerts.')

export const shownShadowSchema = z.object({ ...versionFields, document: policyDocumentSchema })

export const comparisonQuery = z.strictObject({
  since: instantParameter('Only events received at this instant or later.'),
  version: versionNumber.optional().describe('a version of the shadow; by default the last one'),
})

const count = z.number().int()
const alertsSchema = z.object({ active: count, shadow: count })

export const comparisonSchema = z.object({
  tenant_id: z.string(),
  shadow: z.object({
    version: z.number().int(),
    versions: z.array(z.number().int()).describe('every version that decided an event'),
    policy_hash: z.string(),
    name: z.string().nullable(),
  }),
  since: z.string().nullable(),
  first_event_at: z.string().nullable(),
  last_event_at: z.string().nullable(),
  events: count,
  sessions: count,
  matrix: z
    .record(z.string(), z.record(z.string(), count))
    .describe('events by active and shadow action: matrix.ALLOW.BLOCK would be blocked'),
  alerts: alertsSchema.describe('one per device, session and action'),
  by_action: z.record(z.string(), alertsSchema),
  changes: changesSchema,
  by_platform: z.array(namedChangesSchema),
  by_sdk_version: z.array(namedChangesSchema),
  by_flag: z
    .array(namedChangesSchema)
    .describe('sessions gone or milder by their active flags, the others by those of the shadow'),
  by_disposition: z
    .array(z.object({ name: z.string(), kept: count, lost: count }))
    .describe(
      'existing alerts by disposition: kept where the session has an alert under the shadow too',
    ),
  outcomes: z
    .object({
      as_of: outcomesAsOf,
      active: outcomeCountsSchema,
      shadow: outcomeCountsSchema,
      ...outcomeMoves,
    })
    .describe('of compared sessions that began in the range, by labels and dispositions'),
  moved_most: z.array(
    z.object({
      device_id: z.string(),
      session_id: z.string(),
      active_score: count.describe('the highest risk score of the active policy'),
      shadow_score: count.describe('the highest risk score of the shadow'),
    }),
  ),
})

export type ShadowComparisonBody = z.infer<typeof comparisonSchema>
