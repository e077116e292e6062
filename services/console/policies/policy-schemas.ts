/**
 * Schemas of policies. The core checks a policy document and lists every fault by its path, so here
 * a document is any JSON.
 */
import { z } from 'zod'
import { reasonCharactersMax } from '#shared/core/base/limits/policies.ts'
import { operatorText } from '#shared/core/http/operator-text.ts'
import { pageQuery, pageSchema } from '../http/paging.ts'
import { tenantIdSchema } from '../http/schemas.ts'

export const versionSchema = z.int().min(1).max(2_147_483_647)
export const versionNumber = z.coerce.number().pipe(versionSchema)

export const versionParams = z.object({ tenant_id: tenantIdSchema, version: versionNumber })
export const presetParams = z.object({ name: z.string().min(1).max(64) })

export const listVersionsQuery = z.strictObject(pageQuery(500, 100))

export const setPolicyQuery = z.strictObject({
  if_version: versionNumber.optional().describe('reject the change if another version is in force'),
  reason: operatorText(reasonCharactersMax)
    .min(1)
    .optional()
    .describe('why; shown with the version'),
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
  reason: z.string().nullable().describe('why it was published; null where nobody said'),
  approved_by: z.string().nullable().describe('who approved it; null where nobody had to'),
  in_force: z.boolean(),
}

export const shownPolicySchema = z.object({
  tenant_id: z.string(),
  ...versionFields,
  document: policyDocumentSchema,
})

export const versionsSchema = pageSchema(z.object(versionFields))

const presetFields = { name: z.string(), policy_hash: z.string() }
export const presetsSchema = z.object({ data: z.array(z.object(presetFields)) })
export const presetSchema = z.object({ ...presetFields, document: policyDocumentSchema })

export const policyResultSchema = z
  .object({
    tenant_id: z.string(),
    version: z.number().int(),
    policy_hash: z.string(),
    name: z.string(),
    previous_version: z
      .number()
      .int()
      .describe('the version in force before; the same if nothing changed'),
    duration_ms: z.number().int(),
    confirmed_edges: z.array(z.string()),
    lease_expired_edges: z.array(z.string()),
  })
  .describe('Every edge scores by this version, or refuses until it does.')

export const checkedPolicySchema = z.object({
  valid: z.boolean(),
  policy_hash: z.string().nullable().describe('the content address; null of one that is not valid'),
  errors: z.array(z.object({ path: z.string(), message: z.string() })),
})
