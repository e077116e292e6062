/** Schemas of the alerts of the admin API. */

import { z } from 'zod'
import { countedBys } from '#shared/core/alerts/alert-filters.ts'
import { operatorAlertSchema } from '#shared/core/alerts/alert-schema.ts'
import {
  assignmentSchema,
  dispositionChangeSchema,
  noteSchema,
  otherVerdictsSchema,
} from '#shared/core/alerts/alert-work-schemas.ts'
import { alertValuesMax } from '#shared/core/base/limits/alerts.ts'
import { noteCharactersMax } from '#shared/core/base/limits/http.ts'
import { deliverySchema } from '#shared/core/deliveries/delivery-schema.ts'
import { adminAlertsQuerySchema } from '#shared/core/http/api-schemas.ts'
import { riskPercentileSchema } from '#shared/core/http/field-schemas.ts'
import { operatorText } from '#shared/core/http/operator-text.ts'
import { emailSchema } from '#shared/core/operators/email-schema.ts'
import { reasonSchema } from '#shared/core/scoring/reason-schema.ts'
import { actions } from '#shared/core/scoring/score.ts'
import { eventExplanationSchema } from '../events/explanation-schemas.ts'

export const adminAlertPageSchema = z.object({
  data: z.array(operatorAlertSchema).describe('newest first'),
  total: z.int().min(0).describe('exact, on all pages'),
  limit: z.int(),
  next_cursor: z.string().nullable().describe('`cursor` of the next page; null on the last one'),
})

export const alertCountsQuery = adminAlertsQuerySchema.omit({ limit: true, cursor: true }).extend({
  by: z
    .enum(countedBys)
    .describe('counts the alerts of each of its values; a filter of the same name is left out'),
})

export const alertCountsSchema = z.object({
  data: z
    .array(z.object({ value: z.string(), alerts: z.int() }))
    .describe(`most alerts first, at most ${alertValuesMax} values`),
})

const policyVerdictSchema = z
  .object({
    version: z.int(),
    policy_hash: z.string(),
    name: z.string(),
    action: z.enum(actions),
    risk_score: z.int(),
    rasp_score: z.int(),
    reasons: z.array(reasonSchema),
    risk_features: z
      .boolean()
      .describe('whether the history of the device counted; false when its rows were removed'),
  })
  .nullable()

export const alertDetailSchema = z.object({
  alert: operatorAlertSchema,
  risk_percentile: riskPercentileSchema,
  policy_version: z.int().describe('that of the event that raised it'),
  notes: z.array(noteSchema).describe('oldest first'),
  history: z
    .array(dispositionChangeSchema)
    .describe('the changes of its disposition, oldest first'),
  assignments: z.array(assignmentSchema).describe('the changes of its assignee, oldest first'),
  others: otherVerdictsSchema,
  deliveries: z.array(deliverySchema),
  explanation: eventExplanationSchema
    .nullable()
    .describe('the score of the event that raised it, step by step, at decision time'),
  unexplained: z
    .string()
    .nullable()
    .describe('why there is no explanation: event_not_found, event_not_explainable, unavailable'),
  now: z
    .object({ active: policyVerdictSchema, shadow: policyVerdictSchema })
    .describe('what the present policies say of the same event; null without such a policy'),
})
export type AlertDetail = z.infer<typeof alertDetailSchema>

export const assigneeBody = z.strictObject({
  assignee: emailSchema.nullable().describe('the email of an operator; null: unassigned'),
  expected_assignee: emailSchema
    .nullable()
    .optional()
    .describe('whom you last saw: when it was changed since, nothing is set and the answer is 409'),
})

export const noteBody = z.strictObject({
  note: operatorText(noteCharactersMax).refine((text) => text !== '', 'must not be empty'),
})
