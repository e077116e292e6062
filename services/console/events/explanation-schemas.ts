/** Schemas of the explanation of a stored event. */
import { z } from 'zod'
import { actions, reasonSchema } from '#shared/core/scoring/score.ts'
import { scoreExplanationSchema } from '#shared/core/scoring/score-explanation.ts'

export const eventParams = z.object({
  event_id: z.string().regex(/^evt_[A-Za-z0-9_-]{22}$/, 'must be evt_ and 22 characters'),
})

const actionSchema = z.enum(actions)

const verdictSchema = z.object({
  rasp_score: z.number().int(),
  rasp_action: actionSchema,
  flags: z.array(z.string()),
  reasons: z.array(reasonSchema).nullable().describe('null when what is stored cannot be read'),
})

const explainedAlertSchema = z.object({
  alert_id: z.string(),
  event_id: z.string().describe('the event that raised it: the first of its session to do so'),
  raised_by_this_event: z.boolean(),
  action: actionSchema,
  severity: z.string(),
  risk_score: z.number().int(),
  rasp_score: z.number().int(),
  policy_version: z.number().int(),
  disposition: z.string(),
  created_at: z.string(),
  reasons: z.array(reasonSchema),
  correlation_reasons: z
    .array(reasonSchema)
    .describe('those of the reasons that come from what was known beyond the event'),
})

export const eventExplanationSchema = z.object({
  event: z.object({
    event_id: z.string(),
    tenant_id: z.string(),
    device_id: z.string(),
    session_id: z.string(),
    user_id: z.string().nullable(),
    account_id: z.string().nullable(),
    received_at: z.string(),
    sdk_version: z.string(),
    platform: z.string(),
    epoch: z.number().int(),
  }),
  policy: z.object({
    version: z.number().int(),
    policy_hash: z.string(),
    name: z.string(),
    created_at: z.string().nullable().describe('null when the versions of the tenant are gone'),
    created_by: z.string().nullable(),
    document_intact: z
      .boolean()
      .describe(
        'the stored document is, byte for byte, the one that its hash names; false for documents ' +
          'that were stored by the first release as well, which did not keep the order of keys',
      ),
  }),
  answered: verdictSchema.describe('as it was answered at the time'),
  recomputed: verdictSchema.describe('from the stored body and the stored policy document'),
  matches: z
    .boolean()
    .describe('score, action, flags and the weights of the reasons come out as answered'),
  evidence_differs: z
    .boolean()
    .describe('they do, but evidence is written differently than it was then'),
  differences: z.array(
    z.object({ field: z.string(), answered: z.unknown(), recomputed: z.unknown() }),
  ),
  body_intact: z.boolean().describe('the stored body is, byte for byte, the one that was signed'),
  forced: z
    .object({ device_id: z.string(), rasp_score: z.number().int(), rasp_action: actionSchema })
    .nullable()
    .describe('the sandbox test device that forced the verdict; the steps say what it replaced'),
  steps: scoreExplanationSchema,
  correlation: z
    .object({
      risk_score: z.number().int(),
      action: actionSchema,
      reasons: z.array(reasonSchema).describe('those that signals alone do not give'),
      retry: z.boolean().describe('the same bytes came before: it was not decided again'),
      matches_alert: z
        .boolean()
        .nullable()
        .describe(
          'whether the alert that this event raised says the same; null when it raised none',
        ),
    })
    .nullable()
    .describe(
      'what was known beyond the event, counted again as of its place in the stream; null when ' +
        'what it was counted from is no longer kept',
    ),
  alerts: z.array(explainedAlertSchema).describe('the alerts of its session, oldest first'),
})

export type EventExplanation = z.infer<typeof eventExplanationSchema>
export type ExplainedAlert = z.infer<typeof explainedAlertSchema>
