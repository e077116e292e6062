/**
 * An optimisation: a cheap key by which the pattern of an event is found in a cache, since most
 * events have a pattern that an earlier one had. For an event with every signal of the catalog the
 * key takes 20 µs, the pattern and its hash take 105 µs; a scorer spends 55 µs on an average event
 * in all (`npm run bench -- drain`).
 */
import { type Category, categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import { findRangeIndex, patternTexts } from './signal-patterns.ts'

/** A number for each signal of the catalog. */
const codesByCategory = new Map(
  categories.map((category, index) => [
    category,
    new Map(Object.keys(signalCatalog[category]).map((name, at) => [name, index * 256 + at])),
  ]),
)
const textCodes = new Map([...patternTexts].map((text, at) => [text, at + 1]))
const keyCodes = new Uint16Array(512)

/**
 * The cache key of an event's pattern. Events with different patterns never share a key; one
 * pattern can have several keys.
 * @returns null for an event with too many values to cache
 */
export function toPatternKey(signals: Signals): string | null {
  let length = 0
  for (const category of categories) {
    const own = signals[category] as Signals[Category] | undefined
    const codes = codesByCategory.get(category)!
    for (const name in own) {
      const value = own[name]
      if (value === null) continue
      const code = codes.get(name)
      if (code === undefined) continue
      if (length + 2 > keyCodes.length) return null
      keyCodes[length++] = code
      if (typeof value === 'boolean') keyCodes[length++] = value ? 1 : 2
      else if (typeof value === 'number') keyCodes[length++] = 0x100 + findRangeIndex(value)
      else if (typeof value === 'string') keyCodes[length++] = 0x200 + (textCodes.get(value) ?? 0)
      else if (Array.isArray(value)) {
        if (length + 1 + value.length > keyCodes.length) return null
        keyCodes[length++] = 0x1000 + value.length
        for (const item of value) keyCodes[length++] = toItemCode(item)
      } else length--
    }
  }
  return String.fromCharCode.apply(null, keyCodes.subarray(0, length) as unknown as number[])
}

const toItemCode = (item: unknown): number =>
  0x200 + (typeof item === 'string' ? (textCodes.get(item) ?? 0) : 0)
