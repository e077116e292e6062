/**
 * Names of an event's signals that the catalog does not have. They show operators that an SDK is
 * ahead of the catalog or misspells a name. They are bounded, because clients choose these names.
 */

import { categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'

/** Names kept of one event: the catalog's largest category has under 50, an SDK adds a few. */
export const unknownSignalsMax = 32

/** Longest name that is kept, in characters. The catalog's longest has about 30. */
const unknownNameCharactersMax = 64

/** Stands for every longer name, so that their events are counted all the same. */
const longName = '(longer name)'

const known = categories.map((category) => ({
  category,
  names: new Set(Object.keys(signalCatalog[category])),
}))

/**
 * The unknown signals of an event as `category.name`, each once, sorted.
 * Those beyond the first 32 that the event names are left out; names of more than 64 characters
 * become one `category.(longer name)`.
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
