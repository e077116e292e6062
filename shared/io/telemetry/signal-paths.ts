/**
 * Which of a tenant's signals beyond the catalog get a path in the `signals` column: the first ones
 * that are seen, up to a bound. Clients choose these names, and every path costs ClickHouse memory
 * and time in each part. Whatever has no path is in the stored body.
 *
 * A tenant within the bound gets the same row from every scorer. Beyond it two scorers may have
 * given paths to different names; the body and every count are the same all the same.
 */
import {
  signalPathBytesMax,
  signalPathIdleMs,
  signalPathsPerTenantMax,
} from '#shared/core/base/limits/telemetry.ts'

export type SignalPaths = {
  /** Whether a path beyond the catalog may be stored. */
  admit: (tenantId: string, path: string) => boolean
}

type Own = {
  /** When each path was seen last. */
  seenMs: Map<string, number>
  /** Before this no path can be idle for long enough. */
  fullUntilMs: number
}

/** @param nowMs the monotonic clock */
export function createSignalPaths(nowMs: () => number): SignalPaths {
  const tenants = new Map<string, Own>()
  return {
    admit: (tenantId, path) => {
      if (Buffer.byteLength(path) > signalPathBytesMax) return false
      let own = tenants.get(tenantId)
      if (own === undefined) {
        own = { seenMs: new Map(), fullUntilMs: 0 }
        tenants.set(tenantId, own)
      }
      const atMs = nowMs()
      if (!own.seenMs.has(path) && !hasRoom(own, atMs)) return false
      own.seenMs.set(path, atMs)
      return true
    },
  }
}

function hasRoom(own: Own, atMs: number): boolean {
  const { seenMs } = own
  if (seenMs.size < signalPathsPerTenantMax) return true
  if (atMs < own.fullUntilMs) return false
  let oldestMs = Number.POSITIVE_INFINITY
  for (const [path, lastMs] of seenMs) {
    if (lastMs <= atMs - signalPathIdleMs) seenMs.delete(path)
    else oldestMs = Math.min(oldestMs, lastMs)
  }
  own.fullUntilMs = oldestMs + signalPathIdleMs
  return seenMs.size < signalPathsPerTenantMax
}
