/** What bulk changes of alerts take. */
import { z } from 'zod'
import { dispositions } from '#shared/core/alerts/dispositions.ts'
import { bulkSelectionMax } from '#shared/core/base/limits/alerts.ts'
import { noteCharactersMax } from '#shared/core/base/limits/http.ts'
import { adminAlertsQuerySchema } from '#shared/core/http/api-schemas.ts'
import { operatorText } from '#shared/core/http/operator-text.ts'
import { emailSchema } from '#shared/core/operators/email-schema.ts'
import type { BulkChange } from '#shared/io/alerts/bulk/bulk-job-store.ts'
import { idSchema } from '../http/schemas.ts'

const targetFields = {
  filter: adminAlertsQuerySchema
    .omit({ limit: true, cursor: true })
    .optional()
    .describe('the parameters of the list as texts, such as {"disposition": "OPEN,REVIEWED"}'),
  alert_ids: z
    .array(idSchema)
    .min(1)
    .max(bulkSelectionMax)
    .optional()
    .describe('instead of a filter: these alerts'),
  expected_count: z
    .int()
    .min(0)
    .describe('`total` of the list with this filter, or how many alerts are selected'),
}

export type TargetBody = z.infer<z.ZodObject<typeof targetFields>>

const namesOneTarget = ({ filter, alert_ids: ids }: Partial<TargetBody>) =>
  (filter === undefined) !== (ids === undefined)
const oneTarget = 'must have either `filter` or `alert_ids`'

export const bulkDispositionBody = z
  .strictObject({
    ...targetFields,
    disposition: z.enum(dispositions),
    note: operatorText(noteCharactersMax).nullish(),
  })
  .refine(namesOneTarget, oneTarget)

export const bulkAssignBody = z
  .strictObject({
    ...targetFields,
    assignee: emailSchema.nullable().describe('the email of an operator; null: unassigned'),
  })
  .refine(namesOneTarget, oneTarget)

/** A bulk change as it is asked for. */
export type BulkWanted = TargetBody & { change: BulkChange; note: string | null }

/** @param body of either route */
export function toBulkWanted(
  body: z.infer<typeof bulkDispositionBody> | z.infer<typeof bulkAssignBody>,
): BulkWanted {
  if ('disposition' in body) {
    const change = { sets: 'disposition', disposition: body.disposition } as const
    return { ...body, change, note: body.note ?? null }
  }
  return { ...body, change: { sets: 'assignee', assignee: body.assignee }, note: null }
}
