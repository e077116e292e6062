/**
 * The names of an event's detected boolean signals, for the column `detected_signals`. The column's
 * default expression gives the same, except for names beyond the tenant's limit. They are computed
 * here because the default costs the engine as much as the rest of a row.
 */
import { compareBytes } from '#shared/core/base/byte-order.ts'
import { detectedWhenFalse } from '#shared/core/signals/watched-signals.ts'
import { type Category, categories, type Signals } from './signal-definition.ts'
import { findSignal } from './signals.ts'

/** Longest name that is listed, in bytes, and most names of one event. */
const nameBytesMax = 64
const detectedMax = 256

/**
 * `category.signal` of every detected boolean, each once, in byte order.
 * @param admit whether a signal beyond the catalog is listed
 */
export function findDetectedSignals(
  signals: Signals,
  admit: (category: Category, name: string) => boolean,
): string[] {
  const found: string[] = []
  for (const category of categories) {
    const own = signals[category]
    for (const name in own) {
      const value = own[name]
      if (typeof value !== 'boolean') continue
      if (value === isDetectedWhenFalse(category, name)) continue
      if (Buffer.byteLength(name) > nameBytesMax) continue
      if (findSignal(category, name) === undefined && !admit(category, name)) continue
      found.push(`${category}.${name}`)
    }
  }
  if (found.length > 1) found.sort(compareBytes)
  return found.length > detectedMax ? found.slice(0, detectedMax) : found
}

// Checked for every signal of every event, so the path is built only for names that can match.
const whenFalseNames = new Set([...detectedWhenFalse].map((path) => path.split('.')[1]!))
const isDetectedWhenFalse = (category: string, name: string): boolean =>
  whenFalseNames.has(name) && detectedWhenFalse.has(`${category}.${name}`)
