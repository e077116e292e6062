/**
 * Names of an event's signals that are not in the catalog. They show operators that an SDK is ahead
 * of the catalog or misspells a name. They are bounded, because clients choose them.
 */

import { categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'

/** Names kept of one event: an SDK that is ahead of the catalog adds a few. */
export const unknownSignalsMax = 32

/** Longest name that is kept, in characters. The catalog's longest name has about 30. */
const unknownNameCharactersMax = 64

/** Replaces every longer name, so that events with long names are still counted. */
const longName = '(longer name)'

const known = categories.map((category) => ({
  category,
  names: new Set(Object.keys(signalCatalog[category])),
}))

/**
 * The unknown signals of an event as `category.name`, each once, sorted: the first 32 in the order
 * of the event. Names of more than 64 characters become one `category.(longer name)`.
 */
export function findUnknownSignals(signals: Signals): string[] {
  const found = new Set<string>()
  for (const { category, names } of known) {
    const own = signals[category]
    for (const name in own) {
      if (names.has(name)) continue
      found.add(toPath(category, name))
      if (found.size === unknownSignalsMax) return [...found].sort()
    }
  }
  return found.size > 1 ? [...found].sort() : [...found]
}

function toPath(category: string, name: string): string {
  return `${category}.${name.length > unknownNameCharactersMax ? longName : name}`
}
