/**
 * Which pattern an event's signals have, and which patterns are not stored yet: what a writer of
 * telemetry remembers between inserts. All of it is bounded, because clients choose signals; an
 * event beyond the bounds has no pattern, which makes a backtest of it slower and nothing else.
 */
import { LRUCache } from 'lru-cache'
import { toPatternKey } from '#shared/core/scoring/sql/signal-pattern-key.ts'
import {
  type SignalPattern,
  toPatternId,
  toSignalPattern,
} from '#shared/core/scoring/sql/signal-patterns.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'

export type NewPattern = { tenantId: string; id: string; pattern: SignalPattern }

export type PatternBook = {
  /** @returns the pattern's id, or an empty text when there is no room for another */
  find: (tenantId: string, signals: Signals) => string
  /** Patterns that were found and not marked as stored. */
  listNew: () => NewPattern[]
  markStored: (patterns: readonly NewPattern[]) => void
}

/** Patterns of one tenant; the simulated fleet has a few thousand. */
const perTenantMax = 5_000
/** Of all tenants, some 100 bytes each. A tenant that is forgotten has its patterns stored anew. */
const patternsMax = 200_000
/** Keys whose pattern is remembered: 200 bytes each. */
const keysMax = 16_000

/** What is known of one tenant's patterns; its size in the cache is the number of ids. */
type Own = { stored: Set<string>; fresh: Map<string, NewPattern> }

export function createPatternBook(): PatternBook {
  // A tenant whose new patterns are being stored must not be forgotten meanwhile.
  let withNew = new Map<string, Own>()
  const tenants = new LRUCache<string, Own>({ maxSize: patternsMax })
  const recall = createRecall()
  const findOwn = (tenantId: string): Own => {
    const known = withNew.get(tenantId) ?? tenants.get(tenantId)
    if (known !== undefined) return known
    const own: Own = { stored: new Set(), fresh: new Map() }
    tenants.set(tenantId, own, { size: 1 })
    return own
  }
  return {
    find: (tenantId, signals) => {
      const { id, pattern } = recall(signals)
      const own = findOwn(tenantId)
      if (own.stored.has(id) || own.fresh.has(id)) return id
      if (own.stored.size + own.fresh.size >= perTenantMax) return ''
      own.fresh.set(id, { tenantId, id, pattern: pattern ?? toSignalPattern(signals) })
      withNew.set(tenantId, own)
      return id
    },
    listNew: () => [...withNew.values()].flatMap(({ fresh }) => [...fresh.values()]),
    markStored: (patterns) => {
      for (const { tenantId, id } of patterns) withNew.get(tenantId)?.stored.add(id)
      for (const [tenantId, own] of withNew) {
        own.fresh.clear()
        // The cache measures an entry anew only when its value is another one.
        tenants.delete(tenantId)
        tenants.set(tenantId, own, { size: 1 + own.stored.size })
      }
      withNew = new Map()
    },
  }
}

/** Most events have a pattern that one before them had: it is found by its key. */
function createRecall() {
  const recent = new LRUCache<string, string>({ max: keysMax })
  return (signals: Signals): { id: string; pattern?: SignalPattern } => {
    const key = toPatternKey(signals)
    const known = key === null ? undefined : recent.get(key)
    if (known !== undefined) return { id: known }
    const pattern = toSignalPattern(signals)
    const id = toPatternId(pattern)
    if (key !== null) recent.set(key, id)
    return { id, pattern }
  }
}
