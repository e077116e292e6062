/**
 * A second list of what must stay gone, in NATS beside Postgres: erased subjects, API keys that are
 * retired, and the newest webhook secret of each tenant. When one of the stores is put back to an
 * earlier state, the other one still knows. It has hashes and numbers, never an id or a secret.
 */
import { z } from 'zod'
import { removalsBucket } from '#shared/core/telemetry/nats-names.ts'
import type { Prover } from '#shared/io/keys/proofs.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readEntries } from '#shared/io/nats/kv-entries.ts'
import { openRemovalsBucket } from '#shared/io/nats/streams/buckets.ts'
import { decodeReport, encodeReport } from '#shared/io/tenants/directory/kv-reporter.ts'

export const removalSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('api_key'), tenant_id: z.string(), sha256: z.string() }),
  z.object({ kind: z.literal('webhook'), tenant_id: z.string(), secret_id: z.number().int() }),
  z.object({
    kind: z.literal('erasure'),
    tenant_id: z.string(),
    subject: z.enum(['device', 'user']),
    sha256: z.string(),
    /** Of the latest erasure of the subject, ISO-8601: what was accepted before is gone. */
    started_at: z.string(),
  }),
])
export type Removal = z.infer<typeof removalSchema>
export type Erased = Extract<Removal, { kind: 'erasure' }>

/** One key of the bucket has the newest of what replaces one another. */
export function toRemovalKey(removal: Removal): string {
  if (removal.kind === 'api_key') return `api_key.${removal.sha256}`
  if (removal.kind === 'webhook') return `webhook.${removal.tenant_id}`
  return `erasure.${removal.tenant_id}.${removal.subject}.${removal.sha256}`
}

/** Whether the first says more than the second: a later erasure, or a newer secret. */
export function isNewer(one: Removal, other: Removal | undefined): boolean {
  if (other === undefined) return true
  if (one.kind === 'webhook' && other.kind === 'webhook') return one.secret_id > other.secret_id
  if (one.kind === 'erasure' && other.kind === 'erasure') return one.started_at > other.started_at
  return false
}

/**
 * Reads the list by key. Entries that no console has written are left out.
 * @throws when NATS is away
 */
export async function readRemovals(nats: Nats, prover: Prover): Promise<Map<string, Removal>> {
  const entries = await readEntries(nats, await openRemovalsBucket(nats), '>')
  const removals = new Map<string, Removal>()
  for (const entry of entries.values()) {
    const parsed = removalSchema.safeParse(decodeReport(prover, removalsBucket, entry))
    if (parsed.success) removals.set(entry.key, parsed.data)
  }
  return removals
}

/** @throws when NATS is away */
export async function putRemovals(
  nats: Nats,
  prover: Prover,
  removals: readonly Removal[],
): Promise<void> {
  const bucket = await openRemovalsBucket(nats)
  for (const removal of removals) {
    const key = toRemovalKey(removal)
    await bucket.put(key, encodeReport(prover, { bucketName: removalsBucket, key }, removal))
  }
}
