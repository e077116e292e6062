/** Which edges still announce themselves in the tenant directory of a server. */
import { deadEdgeMs } from '#shared/core/base/limits/tenants.ts'
import { tenantsBucket } from '#shared/core/telemetry/nats-names.ts'
import { edgeGoneSchema, edgeKey } from '#shared/core/tenants/directory-entries.ts'
import { splitProof } from '#shared/io/keys/proofs.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { readEntries } from '#shared/io/nats/kv-entries.ts'
import { openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'

/**
 * Reads no proof: what it returns is shown, and nothing else depends on it.
 * @returns the ids of edges that announced themselves lately and did not say that they ended
 * @throws when NATS is away, or has no directory
 */
export async function findLiveEdges(nats: Nats): Promise<string[]> {
  const bucket = await openTenantsBucket(nats)
  const entries = await readEntries(nats, bucket, edgeKey('*'))
  // By the clock of the server, as the entries are.
  const { ts } = await nats.manager.streams.info(`KV_${tenantsBucket}`)
  const nowMs = Date.parse(ts ?? '') || Date.now()
  const isLive = (entry: { operation: string; created: Date; string: () => string }) =>
    entry.operation === 'PUT' &&
    nowMs - entry.created.getTime() < deadEdgeMs &&
    !saysGone(entry.string())
  return [...entries.values()]
    .filter(isLive)
    .map(({ key }) => key.slice(edgeKey('').length))
    .sort()
}

function saysGone(whole: string): boolean {
  try {
    return edgeGoneSchema.safeParse(JSON.parse(splitProof(whole).text)).success
  } catch {
    return false
  }
}
