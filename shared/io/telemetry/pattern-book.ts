/**
 * Assigns patterns to the signals of events and lists the patterns that are not stored yet. Memory
 * is bounded, because clients choose signals. An event beyond the limits gets no pattern; only its
 * backtest is slower then.
 */
import { LRUCache } from 'lru-cache'
import { dayMs } from '#shared/core/base/instants.ts'
import { toPatternKey } from '#shared/core/scoring/sql/signal-pattern-key.ts'
import {
  type SignalPattern,
  toPatternId,
  toSignalPattern,
} from '#shared/core/scoring/sql/signal-patterns.ts'
import type { ServerSignals, Signals } from '#shared/core/signals/signal-definition.ts'

export type NewPattern = { tenantId: string; id: string; pattern: SignalPattern }

export type PatternBook = {
  /** @returns the pattern's id; empty when the tenant has too many patterns */
  find: (tenantId: string, signals: Signals, server?: ServerSignals) => string
  /** New patterns that are not marked as stored. */
  listNew: () => NewPattern[]
  markStored: (patterns: readonly NewPattern[]) => void
}

/** Patterns per tenant; the simulated fleet has a few thousand. */
const perTenantMax = 5_000
/** Patterns of all tenants, some 100 bytes each. Those of an evicted tenant are stored again. */
const patternsMax = 200_000
/**
 * How long a tenant's patterns are remembered. Then they are stored again, because
 * `signal_patterns`
 * removes those that were not stored for long.
 */
const rememberedMs = 30 * dayMs
/** Cached keys, 200 bytes each. */
const keysMax = 16_000

/** One tenant's patterns; its size in the cache is the number of ids. */
type TenantPatterns = {
  stored: Set<string>
  fresh: Map<string, NewPattern>
  sinceMs: number
}

/**
 * Creates an empty book.
 * @param nowMs the monotonic clock
 */
export function createPatternBook(nowMs: () => number): PatternBook {
  // A tenant whose new patterns are being stored must not be evicted.
  let withNew = new Map<string, TenantPatterns>()
  const tenants = new LRUCache<string, TenantPatterns>({ maxSize: patternsMax })
  const toPattern = createPatternCache()
  const findOwn = (tenantId: string): TenantPatterns => {
    const known = withNew.get(tenantId) ?? tenants.get(tenantId)
    if (known !== undefined && nowMs() - known.sinceMs < rememberedMs) return known
    const own: TenantPatterns = { stored: new Set(), fresh: new Map(), sinceMs: nowMs() }
    tenants.set(tenantId, own, { size: 1 })
    return own
  }
  return {
    find: (tenantId, signals, server) => {
      const { id, pattern } = toPattern(signals, server)
      const own = findOwn(tenantId)
      if (own.stored.has(id) || own.fresh.has(id)) return id
      if (own.stored.size + own.fresh.size >= perTenantMax) return ''
      own.fresh.set(id, { tenantId, id, pattern: pattern ?? toSignalPattern(signals, server) })
      withNew.set(tenantId, own)
      return id
    },
    listNew: () => [...withNew.values()].flatMap(({ fresh }) => [...fresh.values()]),
    markStored: (patterns) => {
      for (const { tenantId, id } of patterns) withNew.get(tenantId)?.stored.add(id)
      for (const [tenantId, own] of withNew) {
        own.fresh.clear()
        // The cache measures an entry only when its value is replaced.
        tenants.delete(tenantId)
        tenants.set(tenantId, own, { size: 1 + own.stored.size })
      }
      withNew = new Map()
    },
  }
}

/** Finds the pattern of signals; most events repeat a recent one, which a cheap key finds. */
function createPatternCache() {
  const recent = new LRUCache<string, string>({ max: keysMax })
  return (signals: Signals, server?: ServerSignals): { id: string; pattern?: SignalPattern } => {
    const key = toPatternKey(signals, server)
    const known = key === null ? undefined : recent.get(key)
    if (known !== undefined) return { id: known }
    const pattern = toSignalPattern(signals, server)
    const id = toPatternId(pattern)
    if (key !== null) recent.set(key, id)
    return { id, pattern }
  }
}
