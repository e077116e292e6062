/**
 * An optimisation: a cheap key by which the pattern of an event is found in a cache, since most
 * events have a pattern that an earlier one had. For an event with every signal of the catalog the
 * key takes 20 µs, the pattern and its hash take 105 µs; a scorer spends 55 µs on an average event
 * in all (`npm run bench -- drain`).
 */
import {
  categories,
  noServerSignals,
  type ServerSignals,
  type SignalCategory,
  type Signals,
  serverCategories,
} from '#shared/core/signals/signal-definition.ts'
import { fullCatalog } from '#shared/core/signals/signals.ts'
import { findRangeIndex, patternTexts } from './signal-patterns.ts'

/** A number for each signal of the catalog. */
const codesByCategory = new Map(
  [...categories, ...serverCategories].map((category, index) => [
    category as SignalCategory,
    new Map(Object.keys(fullCatalog[category]).map((name, at) => [name, index * 256 + at])),
  ]),
)
const textCodes = new Map([...patternTexts].map((text, at) => [text, at + 1]))
const keyCodes = new Uint16Array(512)

/**
 * The cache key of an event's pattern. Events with different patterns never share a key; one
 * pattern can have several keys.
 * @returns null for an event that is not cached: it has too many values, or a server signal that
 * the catalog does not have
 */
export function toPatternKey(
  signals: Signals,
  server: ServerSignals = noServerSignals,
): string | null {
  let length = 0
  for (const category of categories) {
    length = addCodes(codesByCategory.get(category)!, signals[category], length)
    if (length < 0) return null
  }
  for (const category of serverCategories) {
    const own = server[category]
    if (own === undefined) continue
    const codes = codesByCategory.get(category)!
    for (const name in own) {
      if (!codes.has(name) || !isKeptType(own[name])) return null
    }
    length = addCodes(codes, own, length)
    if (length < 0) return null
  }
  return String.fromCharCode.apply(null, keyCodes.subarray(0, length) as unknown as number[])
}

/** Whether the code of a value says all that a pattern keeps of it. */
const isKeptType = (value: unknown): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (Array.isArray(value) && value.every((item) => typeof item === 'string'))

/** @returns the new length of `keyCodes`; -1 when there is no room */
function addCodes(
  codes: ReadonlyMap<string, number>,
  own: Record<string, unknown> | undefined,
  from: number,
): number {
  let length = from
  for (const name in own) {
    const value = own[name]
    if (value === null) continue
    const code = codes.get(name)
    if (code === undefined) continue
    if (length + 2 > keyCodes.length) return -1
    keyCodes[length++] = code
    if (typeof value === 'boolean') keyCodes[length++] = value ? 1 : 2
    else if (typeof value === 'number') keyCodes[length++] = 0x100 + findRangeIndex(value)
    else if (typeof value === 'string') keyCodes[length++] = 0x200 + (textCodes.get(value) ?? 0)
    else if (Array.isArray(value)) {
      if (length + 1 + value.length > keyCodes.length) return -1
      keyCodes[length++] = 0x1000 + value.length
      for (const item of value) keyCodes[length++] = toItemCode(item)
    } else length--
  }
  return length
}

const toItemCode = (item: unknown): number =>
  0x200 + (typeof item === 'string' ? (textCodes.get(item) ?? 0) : 0)
