/**
 * Admits unknown signals of a tenant to the `signals` column: the first names that occur, up to a
 * limit. Clients choose these names, and every path costs ClickHouse memory and time in each part.
 * The stored body has all signals.
 *
 * Below the limit every scorer writes the same row. Beyond it two scorers may have admitted
 * different names; the body and all counts are the same.
 */
import {
  signalPathBytesMax,
  signalPathIdleMs,
  signalPathsPerTenantMax,
} from '#shared/core/base/limits/telemetry.ts'

export type SignalPaths = {
  /** Whether the path of an unknown signal may be stored. */
  admit: (tenantId: string, path: string) => boolean
  /** Tenants that have as many paths as they may. */
  listFull: () => string[]
  /** Forgets the paths of a tenant: those that are still sent are admitted again. */
  free: (tenantId: string) => void
}

type TenantPaths = {
  /** The last occurrence of each path. */
  seenMs: Map<string, number>
  /** No path can be idle for long enough before this. */
  fullUntilMs: number
}

/** @param nowMs the monotonic clock */
export function createSignalPaths(nowMs: () => number): SignalPaths {
  const tenants = new Map<string, TenantPaths>()
  return {
    admit: (tenantId, path) => {
      if (Buffer.byteLength(path) > signalPathBytesMax) return false
      let own = tenants.get(tenantId)
      if (own === undefined) {
        own = { seenMs: new Map(), fullUntilMs: 0 }
        tenants.set(tenantId, own)
      }
      const atMs = nowMs()
      if (!own.seenMs.has(path) && !hasSpace(own, atMs)) return false
      own.seenMs.set(path, atMs)
      return true
    },
    listFull: () =>
      [...tenants].flatMap(([tenantId, { seenMs }]) =>
        seenMs.size < signalPathsPerTenantMax ? [] : tenantId,
      ),
    free: (tenantId) => tenants.delete(tenantId),
  }
}

function hasSpace(tenantPaths: TenantPaths, atMs: number): boolean {
  const { seenMs } = tenantPaths
  if (seenMs.size < signalPathsPerTenantMax) return true
  if (atMs < tenantPaths.fullUntilMs) return false
  let oldestMs = Number.POSITIVE_INFINITY
  for (const [path, lastMs] of seenMs) {
    if (lastMs <= atMs - signalPathIdleMs) seenMs.delete(path)
    else oldestMs = Math.min(oldestMs, lastMs)
  }
  tenantPaths.fullUntilMs = oldestMs + signalPathIdleMs
  return seenMs.size < signalPathsPerTenantMax
}
