/** What the routes of proposals and of four eyes take and answer. */
import { z } from 'zod'
import { guardedKinds, proposalStates } from '#shared/core/approvals/four-eyes.ts'
import {
  bulkAboveDefault,
  bulkAboveMax,
  proposalDays,
  proposalDaysMax,
  reasonCharactersMax,
} from '#shared/core/base/limits/policies.ts'
import { operatorText } from '#shared/core/http/operator-text.ts'
import { listEntryBody } from '#shared/core/lists/list-schemas.ts'
import { bulkAssignBody, bulkDispositionBody } from '../alerts/bulk-schemas.ts'
import { erasureSubjectBody } from '../erasure/erasure-schemas.ts'
import { pageQuery, pageSchema } from '../http/paging.ts'
import { idSchema, rotateBody, tenantParams } from '../http/schemas.ts'
import { backtestSummarySchema, reasonSchema } from '../policies/drafts/draft-schemas.ts'
import { policyBody } from '../policies/policy-schemas.ts'
import { retentionBody } from '../retention/retention-routes.ts'
import { createKeyBody } from '../tenants/key-routes.ts'

export const proposalParams = tenantParams.extend({ proposal_id: idSchema })

export const fourEyesBody = z
  .strictObject({
    enabled: z.boolean(),
    bulk_above: z
      .int()
      .min(0)
      .max(bulkAboveMax)
      .default(bulkAboveDefault)
      .describe('a bulk change of more alerts needs an approval'),
  })
  .meta({ examples: [{ enabled: true, bulk_above: 100 }] })

export const fourEyesSchema = z.object({
  tenant_id: z.string(),
  enabled: z.boolean(),
  bulk_above: z.int(),
})

const common = {
  reason: reasonSchema.describe('why; shown to the approver'),
  expires_in_days: z
    .int()
    .min(1)
    .max(proposalDaysMax)
    .default(proposalDays)
    .describe('how long it waits for an approval'),
}

export const proposalBody = z
  .discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('policy'),
      ...common,
      document: policyBody.optional(),
      draft_id: idSchema.optional().describe('in place of a document: this draft, as it is now'),
    }),
    z.strictObject({ kind: z.literal('rotation'), ...common, credentials: rotateBody }),
    z.strictObject({
      kind: z.literal('install_root'),
      ...common,
      action: z.enum(['rotate', 'drop_previous']),
    }),
    z.strictObject({ kind: z.literal('erasure'), ...common, subject: erasureSubjectBody }),
    z.strictObject({
      kind: z.literal('bulk'),
      ...common,
      change: z.union([bulkDispositionBody, bulkAssignBody]),
    }),
    z.strictObject({ kind: z.literal('bulk_undo'), ...common, job_id: idSchema }),
    z.strictObject({ kind: z.literal('four_eyes'), ...common, setting: fourEyesBody }),
    z.strictObject({ kind: z.literal('api_key'), ...common, key: createKeyBody }),
    z.strictObject({ kind: z.literal('retention'), ...common, periods: retentionBody }),
    z.strictObject({ kind: z.literal('wide_list_entry'), ...common, entry: listEntryBody }),
    z.strictObject({ kind: z.literal('suspension'), ...common }),
    z.strictObject({ kind: z.literal('shared_secret'), ...common, off: z.boolean() }),
  ])
  .describe('What the direct call would take, and why.')
  .meta({
    examples: [
      { kind: 'rotation', credentials: { hmac: true }, reason: 'a laptop was stolen' },
      { kind: 'erasure', subject: { device_id: 'phone-1' }, reason: 'request 4711' },
    ],
  })
export type ProposalBody = z.infer<typeof proposalBody>

const viewFields = {
  proposal_id: z.string(),
  tenant_id: z.string(),
  kind: z.enum(guardedKinds),
  summary: z.string().describe('what it changes, in a sentence'),
  reason: z.string(),
  author: z.string(),
  state: z
    .enum(proposalStates)
    .describe('void: what it was based on has changed; failed: it was approved and went wrong'),
  may_approve: z.boolean().describe('whether the caller may: never of a proposal of their own'),
  created_at: z.string(),
  expires_at: z.string(),
  ended_at: z.string().nullable(),
  ended_by: z.string().nullable(),
  note: z.string().nullable().describe('why it was rejected, is void or failed'),
}

export const proposalsQuery = z.strictObject({
  ...pageQuery(100, 50),
  state: z.enum(['open', 'all']).default('all'),
})
export const proposalsSchema = pageSchema(z.object(viewFields))

const changeSchema = z.object({
  path: z.string(),
  before: z.string().nullable(),
  after: z.string().nullable(),
})

export const proposalSchema = z
  .object({
    ...viewFields,
    subject: z
      .object({
        kind: z.enum(['device', 'user']),
        sha256: z.string(),
        id: z.string().nullable().describe('while the proposal is open'),
      })
      .nullable()
      .describe('of an erasure'),
    policy: z
      .object({
        base_version: z.int(),
        document: z.unknown(),
        changes: z.array(changeSchema).describe('against the version that it replaces'),
        backtest: backtestSummarySchema.nullable(),
      })
      .nullable()
      .describe('of a policy'),
    alerts: z
      .object({ proposed: z.int(), now: z.int(), within_margin: z.boolean() })
      .nullable()
      .describe('of a bulk change: how many alerts it means'),
  })
  .meta({ id: 'Proposal' })

export const rejectBody = z.strictObject({
  note: operatorText(reasonCharactersMax).default('').describe('why'),
})
export const noBody = z.strictObject({}).nullish()

export const approvedSchema = z.object({
  proposal: proposalSchema,
  result: z.unknown().describe('what the direct call would have answered, new secrets included'),
})
