/** Keys and entries of the tenant directory: the KV bucket `tenants` that every edge watches. */
import { z } from 'zod'
import { installRootsMax } from '#shared/core/base/limits/installs.ts'
import { appEntriesSchema } from '#shared/core/installs/tenant-apps.ts'
import { connectionKinds, idKinds, listNames } from '#shared/core/lists/list-entry.ts'
import { clientAddresses } from './client-address.ts'
import { ingestAnswers } from './ingest-answer.ts'

/** The KV key of a tenant's entry. */
export const tenantKey = (tenantId: string): string => `tenant.${tenantId}`
/** The KV key of a policy document, by its content address. */
export const policyKey = (policyHash: string): string => `policy.${policyHash}`
/** The KV key of a shard of a tenant's allow and deny lists. A tenant id contains no dot. */
export const listKey = (tenantId: string, shard: number | string): string =>
  `list.${tenantId}.${shard}`
/** The start of the KV keys of all shards. */
export const listKeyPrefix = 'list.'
/**
 * The KV key of a tenant's lists of networks, operators and countries. It is no shard of its lists:
 * an edge of an earlier release refuses a tenant with a shard that it cannot read, and reads on
 * over a key that it does not know.
 */
export const connectionListKey = (tenantId: string): string => `connections.${tenantId}`
export const connectionListKeyPrefix = 'connections.'
/**
 * Reads the key of a shard or of a list of connections, whose `shard` is null.
 * @returns null when the key is neither
 */
export function parseListKey(key: string): { tenantId: string; shard: string | null } | null {
  const [kind, tenantId = '', shard = null, ...rest] = key.split('.')
  if (kind === 'connections' && shard === null) return { tenantId, shard }
  return kind === 'list' && rest.length === 0 ? { tenantId, shard: shard ?? '' } : null
}
/** The KV key of an edge's announcement. */
export const edgeKey = (edgeId: string): string => `edge.${edgeId}`

/**
 * The KV key that marks the bucket as synced: it has every tenant. It is lost with the bucket, and
 * written again only when the bucket equals Postgres. Without it an edge cannot distinguish a
 * tenant that does not exist from one that is not restored yet.
 */
export const syncedKey = 'synced'
/** The least number of tenants, to detect the loss of single entries. */
export const syncedEntrySchema = z.object({ tenants: z.number().int().min(0) })
export type SyncedEntry = z.infer<typeof syncedEntrySchema>

/** A tenant as the edges see it. Its secrets are sealed for edges. */
export const tenantEntrySchema = z.object({
  tenant_id: z.string(),
  environment: z.enum(['live', 'sandbox']),
  status: z.enum(['active', 'suspended']),
  /** Rises with every change of a credential or of the status. */
  epoch: z.number().int(),
  /** Null while a rotation has the old secret off and the new one not yet on. */
  hmac_secret_sealed: z.string().nullable(),
  /**
   * The previous secret, never valid again: only to detect clients that still sign with it. Missing
   * before the first rotation, and in entries of older consoles.
   */
  hmac_secret_retired_sealed: z.string().optional(),
  policy_version: z.number().int(),
  /** It is written unescaped into every event's header. */
  policy_hash: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  /** Ingest rate; null is unlimited. */
  ingest_rate: z
    .object({ perSecond: z.number().positive(), burst: z.number().positive() })
    .nullable(),
  /** Ingest rate in bytes; null or missing, as from older consoles, is the product's default. */
  ingest_bytes: z
    .object({ perSecond: z.number().positive(), burst: z.number().positive() })
    .nullish(),
  /** Share of the stream for its undecided events; likewise. */
  ingest_share: z.number().positive().lt(1).nullish(),
  /** Shards of its lists that are in the directory; missing for none. An edge needs all of them. */
  list_shards: z.number().int().positive().optional(),
  /** Present when the directory has its list of connections: an edge needs it. */
  connection_list: z.literal(true).optional(),
  /** The number of its telemetry stream; missing for the first one. */
  telemetry_stream: z.number().int().positive().optional(),
  /**
   * The valid install roots, the one that makes tokens first. Missing while the tenant has none, as
   * in entries of older consoles.
   */
  install_roots: z
    .array(z.object({ epoch: z.number().int().positive(), sealed: z.string() }))
    .max(installRootsMax)
    .optional(),
  /** Present when telemetry that is signed with the HMAC secret is refused. */
  shared_secret_off: z.literal(true).optional(),
  /** Its apps, whose evidence counts; missing for none. */
  apps: appEntriesSchema.optional(),
  /** What a 200 tells the client; missing for `full`. */
  ingest_answer: z.enum(ingestAnswers).optional(),
  /** Which address of a client counts; missing for `connection`. */
  client_address: z.enum(clientAddresses).optional(),
  /** Present when events keep the full address. */
  store_client_address: z.literal(true).optional(),
  /** The key that addresses are hashed under. Missing in entries of older consoles. */
  address_key_sealed: z.string().optional(),
})
export type TenantEntry = z.infer<typeof tenantEntrySchema>

/**
 * A shard of a tenant's lists: its entries by the hash of their id, and a version that rises with
 * every change, so that one version names one content. An entry gets its shard at random, so that a
 * change writes a sixteenth of a long list. Only the first entry of a shard changes the tenant's.
 */
export const listShardSchema = z.object({
  tenant_id: z.string(),
  shard: z.number().int().min(0),
  version: z.number().int(),
  /** [hash of the id, list, kind, entry id, reason, expiry in ms since 1970 or null] */
  entries: z.array(
    z.tuple([
      z.string(),
      z.enum(listNames),
      z.enum(idKinds),
      z.string(),
      z.string(),
      z.number().int().nullable(),
    ]),
  ),
})
export type ListShard = z.infer<typeof listShardSchema>

/**
 * A tenant's lists of networks, operators and countries, whole: an edge makes one table of it. They
 * are no hashes: an edge has to compare addresses with networks.
 */
export const connectionListSchema = z.object({
  tenant_id: z.string(),
  version: z.number().int(),
  /** [network, operator or country, list, kind, entry id, reason, expiry in ms since 1970 or null] */
  entries: z.array(
    z.tuple([
      z.string(),
      z.enum(listNames),
      z.enum(connectionKinds),
      z.string(),
      z.string(),
      z.number().int().nullable(),
    ]),
  ),
})
export type ConnectionList = z.infer<typeof connectionListSchema>

/** An edge's announcement: the newest revision of the tenants bucket that it has applied. */
export const edgeEntrySchema = z.object({
  edge_id: z.string(),
  applied_revision: z.number().int(),
  /** The forms of entries that it reads: 1 under MASTER_KEY, 2 signed; missing is 1 alone. */
  forms: z.array(z.number().int()).optional(),
})
export type EdgeEntry = z.infer<typeof edgeEntrySchema>
/**
 * The last entry of an edge's id: it has no lease and never gets one again. An edge that is still
 * alive announces itself under another id.
 */
export const edgeGoneSchema = z.object({ edge_id: z.string(), gone: z.literal(true) })
export type EdgeGone = z.infer<typeof edgeGoneSchema>
