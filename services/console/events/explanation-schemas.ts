/** Schemas of the explanation of a stored event. */
import { z } from 'zod'
import { toConnectionField } from '#shared/core/network/connection-answer.ts'
import { reasonSchema } from '#shared/core/scoring/reason-schema.ts'
import { actions } from '#shared/core/scoring/score.ts'
import { scoreExplanationSchema } from '#shared/core/scoring/score-explanation.ts'

export const eventParams = z.object({
  event_id: z.string().regex(/^evt_[A-Za-z0-9_-]{22}$/, 'must be evt_ and 22 characters'),
})

const actionSchema = z.enum(actions)

const verdictSchema = z.object({
  rasp_score: z.number().int(),
  rasp_action: actionSchema,
  flags: z.array(z.string()),
  reasons: z.array(reasonSchema).nullable().describe('null when the stored reasons cannot be read'),
})

const explainedAlertSchema = z.object({
  alert_id: z.string(),
  event_id: z.string().describe('the event that raised it: the first one of its session'),
  raised_by_this_event: z.boolean(),
  action: actionSchema,
  severity: z.string(),
  risk_score: z.number().int(),
  rasp_score: z.number().int(),
  policy_version: z.number().int(),
  disposition: z.string(),
  created_at: z.string(),
  reasons: z.array(reasonSchema),
  correlation_reasons: z.array(reasonSchema).describe('the reasons that come from risk features'),
})

export const isIntactSchema = z
  .boolean()
  .nullable()
  .describe(
    'whether the stored body has the bytes that were signed; null when hashes stand for its ' +
      'identifiers, so that its id does not say',
  )

export const eventExplanationSchema = z
  .object({
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
      connection: toConnectionField('Where the event came from.'),
    }),
    policy: z.object({
      version: z.number().int(),
      policy_hash: z.string(),
      name: z.string(),
      created_at: z
        .string()
        .nullable()
        .describe('null when the versions of the tenant were removed'),
      created_by: z.string().nullable(),
      document_intact: z
        .boolean()
        .describe(
          'whether the stored document has the bytes of its hash; also false for documents of the ' +
            'first release, which did not preserve the order of keys',
        ),
    }),
    answered: verdictSchema.describe('the response of that time'),
    decided: z
      .object({
        risk_score: z.number().int(),
        action: actionSchema,
        flags: z.array(z.string()),
        reasons: z.array(reasonSchema),
      })
      .describe(
        'the decision of that time, by which alerts are raised; that of the edge until the scorer has ' +
          'decided',
      ),
    recomputed: verdictSchema.describe('from the stored body and the stored policy document'),
    matches: z.boolean().describe('score, action, flags and weights of reasons equal the response'),
    evidence_differs: z
      .boolean()
      .describe('they do, but the format of the evidence has changed since'),
    differences: z.array(
      z.object({ field: z.string(), answered: z.unknown(), recomputed: z.unknown() }),
    ),
    body_intact: isIntactSchema,
    forced: z
      .object({ device_id: z.string(), rasp_score: z.number().int(), rasp_action: actionSchema })
      .nullable()
      .describe(
        'the sandbox test device that forced the verdict; the steps show the replaced verdict',
      ),
    steps: scoreExplanationSchema,
    correlation: z
      .object({
        risk_score: z.number().int(),
        action: actionSchema,
        reasons: z
          .array(reasonSchema)
          .describe('the reasons that come from risk features, and that of a list with its weight'),
        retry: z
          .boolean()
          .describe('the same bytes arrived before: the event was not decided again'),
        matches_alert: z
          .boolean()
          .nullable()
          .describe('whether the alert of this event has the same risk; null without an alert'),
      })
      .nullable()
      .describe(
        'the risk features, counted again as of the stream offset of the event; null when the rows ' +
          'behind them were removed',
      ),
    alerts: z.array(explainedAlertSchema).describe('the alerts of its session, oldest first'),
  })
  .meta({ id: 'EventExplanation' })

export type EventExplanation = z.infer<typeof eventExplanationSchema>
export type ExplainedAlert = z.infer<typeof explainedAlertSchema>
