/**
 * Removes policy documents from the tenant directory that no tenant uses. They stay for a moment,
 * for events and edges that are under way. A removal names the revision it looked at, and every
 * change of a tenant's policy writes the document anew: so no document goes that has just come into
 * use. A deletion leaves a marker in the stream, which is purged a moment later.
 */
import type { KV, KvEntry } from 'nats'
import { tenantsBucket } from '#shared/core/telemetry/nats-names.ts'
import { policyKey } from '#shared/core/tenants/directory-entries.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import { isWrongRevision } from '#shared/io/nats/jetstream-errors.ts'

export type UnusedPolicies = {
  /**
   * @param held the newest entry of every key, from which purged markers are taken out
   * @param inUse content addresses of the policies that a tenant has
   * @returns how many documents were removed
   * @throws when NATS is away
   */
  remove: (
    bucket: { nats: Nats; bucket: KV; held: Map<string, KvEntry> },
    inUse: ReadonlySet<string>,
  ) => Promise<number>
}

/**
 * @param graceMs how long a document stays after its last use was seen
 * @param nowMs a clock that never goes back
 */
export function createUnusedPolicies(graceMs: number, nowMs: () => number): UnusedPolicies {
  /** When each entry was first seen without a use, by key and revision. */
  let since = new Map<string, number>()
  return {
    remove: async ({ nats, bucket, held }, inUse) => {
      const unused = [...held].filter(
        ([key]) => key.startsWith(policyKey('')) && !inUse.has(key.slice(policyKey('').length)),
      )
      const before = since
      since = new Map()
      let removed = 0
      for (const [key, entry] of unused) {
        const id = `${key} ${entry.revision}`
        const seenMs = before.get(id) ?? nowMs()
        since.set(id, seenMs)
        if (nowMs() - seenMs < graceMs) continue
        if (entry.operation !== 'PUT') {
          await purgeMarker(nats, key, entry.revision)
          held.delete(key)
        } else if (await removeDocument(bucket, key, entry.revision)) {
          removed++
        }
      }
      return removed
    },
  }
}

/** @returns false when it was written again meanwhile */
async function removeDocument(bucket: KV, key: string, revision: number): Promise<boolean> {
  try {
    await bucket.delete(key, { previousSeq: revision })
    return true
  } catch (error) {
    if (!isWrongRevision(error)) throw error
    return false
  }
}

/** Leaves whatever was written after the marker. */
async function purgeMarker(nats: Nats, key: string, revision: number): Promise<void> {
  await nats.manager.streams.purge(`KV_${tenantsBucket}`, {
    filter: `$KV.${tenantsBucket}.${key}`,
    seq: revision + 1,
  })
}
