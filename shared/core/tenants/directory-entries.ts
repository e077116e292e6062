/** Keys and entries of the tenant directory: the KV bucket `tenants` that every edge watches. */
import { z } from 'zod'

/** The KV key of a tenant's entry, and of a policy document by its content address. */
export const tenantKey = (tenantId: string): string => `tenant.${tenantId}`
export const policyKey = (policyHash: string): string => `policy.${policyHash}`
export const edgeKey = (edgeId: string): string => `edge.${edgeId}`

/**
 * The KV key that says the bucket holds every tenant. It is lost with the bucket, and written again
 * only once the bucket was found equal to Postgres: without it an edge cannot tell a tenant that
 * does not exist from one that was not put back yet.
 */
export const syncedKey = 'whole'
/** How many tenants there are at least, for those that are lost one by one. */
export const syncedEntrySchema = z.object({ tenants: z.number().int().min(0) })
export type SyncedEntry = z.infer<typeof syncedEntrySchema>

/** A tenant as the edges see it. The secret is sealed under MASTER_KEY. */
export const tenantEntrySchema = z.object({
  tenant_id: z.string(),
  environment: z.enum(['live', 'sandbox']),
  status: z.enum(['active', 'suspended']),
  /** Rises with every change of a credential or of the status. */
  epoch: z.number().int(),
  /** Null while a rotation has the old secret off and the new one not yet on. */
  hmac_secret_sealed: z.string().nullable(),
  /**
   * The one before, off for good: only to tell who still signs with it. Missing where there was no
   * rotation yet, and from consoles that do not know of it.
   */
  hmac_secret_retired_sealed: z.string().optional(),
  policy_version: z.number().int(),
  /** Stands unescaped in every event's header. */
  policy_hash: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  /** Ingest rate; null is unlimited. */
  ingest_rate: z
    .object({ perSecond: z.number().positive(), burst: z.number().positive() })
    .nullable(),
  /** Ingest rate in bytes; null or missing, as from older consoles, is the product's default. */
  ingest_bytes: z
    .object({ perSecond: z.number().positive(), burst: z.number().positive() })
    .nullish(),
  /** Share of the stream that it may have waiting undecided; likewise. */
  ingest_share: z.number().positive().lt(1).nullish(),
})
export type TenantEntry = z.infer<typeof tenantEntrySchema>

/** What an edge reports: the newest revision of the tenants bucket that it has applied. */
export const edgeEntrySchema = z.object({ edge_id: z.string(), applied_revision: z.number().int() })
export type EdgeEntry = z.infer<typeof edgeEntrySchema>
/**
 * The last entry under an edge's id: no lease is held under it and none ever will be. An edge that
 * lives on announces itself under another id.
 */
export const edgeGoneSchema = z.object({ edge_id: z.string(), gone: z.literal(true) })
export type EdgeGone = z.infer<typeof edgeGoneSchema>
