/** What the admin API takes and answers about shadow policies and what they would have decided. */
import { z } from 'zod'
import { parseInstant } from '#shared/core/base/instants.ts'
import { policyDocumentSchema } from './policy-schemas.ts'

const versionFields = {
  tenant_id: z.string(),
  version: z.number().int(),
  policy_hash: z.string().nullable().describe('null when the shadow is off'),
  name: z.string().nullable(),
  effective_at: z.string().describe('it decides events that are received from then on'),
  created_at: z.string(),
  created_by: z.string(),
}

export const shadowAnswerSchema = z
  .object({
    ...versionFields,
    previous_version: z
      .number()
      .int()
      .describe('the version before; the same when nothing had to change; 0 when there was none'),
  })
  .describe('Nobody is alerted by it, and no edge knows of it.')

export const shownShadowSchema = z.object({ ...versionFields, document: policyDocumentSchema })

export const comparisonQuery = z.strictObject({
  since: z
    .string()
    .refine((text) => parseInstant(text) !== null, 'must be an ISO-8601 time')
    .optional()
    .describe('events that were received before it are left out'),
  version: z.coerce
    .number()
    .int()
    .min(1)
    .max(2_147_483_647)
    .optional()
    .describe('an older version of the shadow; left out, the last one that was set'),
})

const count = z.number().int()
const movesFields = { active: count, shadow: count, gained: count, lost: count }
const movesSchema = z.object(movesFields)
const namedMovesSchema = z.object({ name: z.string(), ...movesFields })

export const comparisonSchema = z.object({
  tenant_id: z.string(),
  shadow: z.object({
    version: z.number().int(),
    versions: z.array(z.number().int()).describe('every version under which it decided'),
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
    .describe('events by what was decided, then by what the shadow would have: matrix.ALLOW.BLOCK'),
  alerts: movesSchema.describe('one for each device, session and action'),
  by_action: z.record(z.string(), movesSchema),
  by_platform: z.array(namedMovesSchema),
  by_sdk_version: z.array(namedMovesSchema),
  by_flag: z
    .array(z.object({ name: z.string(), gained: count, lost: count }))
    .describe('gained by flags of the shadow, lost by those of the active policy'),
  by_disposition: z
    .array(z.object({ name: z.string(), kept: count, lost: count }))
    .describe('alerts that there are, by what people said of them: would the shadow raise them?'),
  moved_most: z.array(
    z.object({
      device_id: z.string(),
      session_id: z.string(),
      active_score: count.describe('the highest risk score that the active policy gave'),
      shadow_score: count.describe('the highest that the shadow would have given'),
    }),
  ),
})

export type ShadowComparisonBody = z.infer<typeof comparisonSchema>
