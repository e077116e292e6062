/** What the routes of drafts take and answer. */
import { z } from 'zod'
import { draftBytesMax, reasonCharactersMax } from '#shared/core/base/limits/policies.ts'
import { operatorText } from '#shared/core/http/operator-text.ts'
import { pageQuery, pageSchema } from '../../http/paging.ts'
import { idSchema, tenantParams } from '../../http/schemas.ts'
import { versionSchema } from '../policy-schemas.ts'

export const draftParams = tenantParams.extend({ draft_id: idSchema })

/** Why something is published or proposed. */
export const reasonSchema = operatorText(reasonCharactersMax).min(1)

const textSchema = z
  .string()
  .refine((text) => !text.includes('\0') && text.isWellFormed(), 'cannot be stored')
  .refine((text) => Buffer.byteLength(text) <= draftBytesMax, {
    error: `must have at most ${draftBytesMax} bytes`,
  })
  .describe('the document as it was typed; it need not be valid, nor JSON')

const fields = {
  text: textSchema,
  comment: operatorText(reasonCharactersMax).default('').describe('what the draft is for'),
  base_version: versionSchema.describe('the version that it is compared with and replaces'),
}
/** As wide as its column. */
const revisionSchema = versionSchema.describe('raised by every change')

export const newDraftBody = z.strictObject(fields)
export const changeDraftBody = z.strictObject({
  ...fields,
  revision: revisionSchema.describe('the one that the change began from'),
})
export const publishDraftBody = z.strictObject({
  reason: reasonSchema.describe('why; shown with the version'),
  revision: revisionSchema.describe('the one that is published'),
})

const viewFields = {
  draft_id: z.string(),
  tenant_id: z.string(),
  name: z.string().nullable().describe('of the policy; null while the text is not JSON'),
  comment: z.string(),
  base_version: z.int(),
  in_force_version: z.int().describe('another one than `base_version`: the base has changed'),
  revision: z.int(),
  created_by: z.string(),
  created_at: z.string(),
  updated_by: z.string(),
  updated_at: z.string(),
}

export const backtestSummarySchema = z
  .object({
    at: z.string(),
    since: z.string().nullable(),
    events: z.int(),
    new: z.int(),
    gone: z.int(),
    stricter: z.int(),
    milder: z.int(),
    confirmed_lost: z.int().describe('confirmed alerts that nothing raises any more'),
  })
  .describe('sessions by what changes for them')

export const draftSchema = z
  .object({
    ...viewFields,
    text: z.string(),
    backtest: backtestSummarySchema
      .nullable()
      .describe('the latest backtest of exactly this policy; null without one'),
  })
  .meta({ id: 'PolicyDraft' })

export const draftsQuery = z.strictObject(pageQuery(100, 50))
export const draftsSchema = pageSchema(z.object(viewFields))
