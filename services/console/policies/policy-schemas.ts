/**
 * The admin API's requests and answers about policies. A document is checked by the core, which
 * names every fault by its path, so here it is any JSON.
 */
import { z } from 'zod'
import { limitSchema, tenantIdSchema } from '../http/schemas.ts'

const versionNumber = z.coerce.number().int().min(1).max(2_147_483_647)

export const versionParams = z.object({ tenant_id: tenantIdSchema, version: versionNumber })
export const presetParams = z.object({ name: z.string().min(1).max(64) })

export const listVersionsQuery = z.strictObject({
  limit: limitSchema(500, 100),
  before: versionNumber.optional().describe('`next` of the page before'),
})

export const setPolicyQuery = z.strictObject({
  if_version: versionNumber
    .optional()
    .describe('refuses the change when another version is in force by now'),
})

export const policyBody = z
  .unknown()
  .describe('A policy document as `/policy.schema.json` describes it, or `{"preset":NAME}`.')
  .meta({ examples: [{ preset: 'strict' }, { preset: 'balanced' }] })

export const policyDocumentSchema = z.unknown()

const versionFields = {
  version: z.number().int(),
  policy_hash: z.string().describe('the content address of the document'),
  name: z.string(),
  created_at: z.string(),
  created_by: z.string(),
  in_force: z.boolean(),
}

export const shownPolicySchema = z.object({
  tenant_id: z.string(),
  ...versionFields,
  document: policyDocumentSchema,
})

export const versionsSchema = z.object({
  data: z.array(z.object(versionFields)),
  next: z.number().int().nullable(),
})

const presetFields = { name: z.string(), policy_hash: z.string() }
export const presetsSchema = z.object({ data: z.array(z.object(presetFields)) })
export const presetSchema = z.object({ ...presetFields, document: policyDocumentSchema })

export const policyAnswerSchema = z
  .object({
    tenant_id: z.string(),
    version: z.number().int(),
    policy_hash: z.string(),
    name: z.string(),
    previous_version: z
      .number()
      .int()
      .describe('the version in force before; the same when nothing had to change'),
    duration_ms: z.number().int(),
    confirmed_edges: z.array(z.string()),
    lease_expired_edges: z.array(z.string()),
  })
  .describe('Every edge scores by this version, or refuses until it does.')
