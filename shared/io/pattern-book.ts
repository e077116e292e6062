/**
 * Which pattern an event's signals have, and which patterns are not stored yet: what a writer of
 * telemetry remembers between inserts. All of it is bounded, because clients choose signals; an
 * event beyond the bounds has no pattern, which makes a backtest of it slower and nothing else.
 */
import {
  type SignalPattern,
  toPatternId,
  toPatternKey,
  toSignalPattern,
} from '#shared/core/signal-patterns.ts'
import type { Signals } from '#shared/core/telemetry.ts'

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
/** Of all tenants, some 100 bytes each. Beyond it all are stored anew, which changes nothing. */
const patternsMax = 200_000
/** Keys whose pattern is remembered, twice: 200 bytes each. */
const keysMax = 8_000

export function createPatternBook(): PatternBook {
  const stored = new Map<string, Set<string>>()
  let fresh = new Map<string, NewPattern>()
  let size = 0
  const recall = createRecall()
  return {
    find: (tenantId, signals) => {
      const { id, pattern } = recall(signals)
      let own = stored.get(tenantId)
      if (own === undefined) {
        own = new Set()
        stored.set(tenantId, own)
      }
      if (own.has(id)) return id
      const key = `${tenantId} ${id}`
      if (fresh.has(key)) return id
      if (own.size + fresh.size >= perTenantMax) return ''
      fresh.set(key, { tenantId, id, pattern: pattern ?? toSignalPattern(signals) })
      return id
    },
    listNew: () => [...fresh.values()],
    markStored: (patterns) => {
      if (size > patternsMax) {
        stored.clear()
        size = 0
      }
      for (const { tenantId, id } of patterns) {
        const own = stored.get(tenantId) ?? new Set()
        stored.set(tenantId, own.add(id))
        size++
      }
      fresh = new Map()
    },
  }
}

/** Most events have a pattern that one before them had: two generations of those by their keys. */
function createRecall() {
  let recent = new Map<string, string>()
  let older = new Map<string, string>()
  return (signals: Signals): { id: string; pattern?: SignalPattern } => {
    const key = toPatternKey(signals)
    const present = key === null ? undefined : recent.get(key)
    if (present !== undefined) return { id: present }
    const old = key === null ? undefined : older.get(key)
    const pattern = old === undefined ? toSignalPattern(signals) : undefined
    const id = old ?? toPatternId(pattern!)
    if (key !== null) {
      if (recent.size >= keysMax) {
        older = recent
        recent = new Map()
      }
      recent.set(key, id)
    }
    return pattern === undefined ? { id } : { id, pattern }
  }
}
