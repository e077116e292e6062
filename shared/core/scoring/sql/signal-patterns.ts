/**
 * The pattern of an event: of its signals what a policy can see, and nothing that could be
 * anybody's own. A fleet has millions of events and a few thousand patterns, so a backtest scores
 * patterns. Booleans are kept, numbers are the lower end of a range, texts are kept when they are
 * of the known vocabulary. What was left out is named, so that a policy that looks closer than the
 * pattern tells (another text, a limit inside a range) is known to need the event itself; for every
 * other policy the pattern scores exactly as the event does.
 */
import { hash } from 'node:crypto'
import type { Policy } from '#shared/core/policies/policy.ts'
import { type Category, categories, type Signals } from '#shared/core/signals/signal-definition.ts'
import { findSignal, signalCatalog } from '#shared/core/signals/signals.ts'

/** Version of the vocabulary and the ranges below. Increase it with every change of them. */
export const patternVersion = 1

/**
 * The texts that patterns keep: what Play Integrity and the catalog's own signals say. None of them
 * identifies a person.
 */
export const patternTexts: ReadonlySet<string> = new Set([
  ...['(empty)', 'UNKNOWN', 'UNEVALUATED', 'UNSPECIFIED', 'VERIFIED', 'SELF_SIGNED', 'UNVERIFIED'],
  ...['FAILED', 'ORIGINAL', 'COMPROMISED', 'POSSIBLY_COMPROMISED'],
  ...['MEETS_VIRTUAL_INTEGRITY', 'MEETS_BASIC_INTEGRITY', 'MEETS_DEVICE_INTEGRITY'],
  ...['MEETS_STRONG_INTEGRITY', 'PLAY_RECOGNIZED', 'UNRECOGNIZED_VERSION', 'LICENSED'],
  ...['UNLICENSED', 'NO_ISSUES', 'NO_DATA', 'MEDIUM_RISK', 'HIGH_RISK', 'POSSIBLE_RISK'],
  ...['KNOWN_INSTALLED', 'KNOWN_CAPTURING', 'KNOWN_CONTROLLING', 'KNOWN_OVERLAYS'],
  ...['UNKNOWN_INSTALLED', 'UNKNOWN_CAPTURING', 'UNKNOWN_CONTROLLING', 'UNKNOWN_OVERLAYS'],
  ...['LEVEL_1', 'LEVEL_2', 'LEVEL_3', 'LEVEL_4', 'UNUSUAL', 'USUAL'],
  ...['low', 'medium', 'high', 'LOW', 'MEDIUM', 'HIGH'],
])

/** Where ranges of numbers begin; the last is open, and -1 stands for all below 0. */
export const patternBounds: readonly number[] = [
  ...[0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 90, 100, 120, 150, 180, 240],
  ...[270, 300, 365, 450, 540, 600, 730, 900, 1_000, 1_095, 1_460, 1_825, 3_650, 10_000],
]
const belowZero = -1

/** Stands in lists for items that are left out: a list of them is not an empty one. */
const leftOut = '?'

export type SignalPattern = {
  /** What is kept, in the order of the catalog. */
  signals: Signals
  /** `category.signal` of texts, and of lists with an item, that were left out. */
  hidden: string[]
}

const known = categories.map((category) => ({
  category,
  names: Object.keys(signalCatalog[category]),
}))

/** The pattern of an event's signals. */
export function toSignalPattern(signals: Signals): SignalPattern {
  const hidden: string[] = []
  const kept = {} as Record<Category, Record<string, unknown>>
  for (const { category, names } of known) {
    const own = (signals[category] ?? {}) as Record<string, unknown>
    const mine: Record<string, unknown> = {}
    kept[category] = mine
    for (const name of names) {
      if (!Object.hasOwn(own, name)) continue
      const value = own[name]
      if (typeof value === 'boolean') mine[name] = value
      else if (typeof value === 'number') mine[name] = findRange(value)
      else if (typeof value === 'string') {
        if (patternTexts.has(value)) mine[name] = value
        else hidden.push(`${category}.${name}`)
      } else if (Array.isArray(value)) {
        const items = [...new Set(value.map(toKeptItem))].sort()
        mine[name] = items
        if (items.includes(leftOut)) hidden.push(`${category}.${name}`)
      }
    }
  }
  return { signals: kept as Signals, hidden }
}

const toKeptItem = (item: unknown): string =>
  typeof item === 'string' && patternTexts.has(item) ? item : leftOut

/** The lower end of a number's range. */
function findRange(value: number): number {
  return patternBounds[findRangeIndex(value)] ?? belowZero
}

/** The place of a number's range; -1 below all. */
function findRangeIndex(value: number): number {
  let at = patternBounds.length - 1
  while (at >= 0 && value < patternBounds[at]!) at--
  return at
}

/** The content address of a pattern: 22 characters, 128 bits of SHA-256. */
export function toPatternId({ signals, hidden }: SignalPattern): string {
  const text = JSON.stringify([patternVersion, signals, hidden])
  return hash('sha256', text, 'buffer').subarray(0, 16).toString('base64url')
}

const placeOf = new Map(
  known.map(({ category, names }, index) => [
    category,
    new Map(names.map((name, at) => [name, index * 256 + at])),
  ]),
)
const textPlaces = new Map([...patternTexts].map((text, at) => [text, at + 1]))
const keyCodes = new Uint16Array(512)

/**
 * A short text that events with different patterns never share: cheap to make of every event, and
 * most have one that was seen before. Two keys may stand for one pattern.
 * @returns null for an event with more in it than is worth remembering
 */
export function toPatternKey(signals: Signals): string | null {
  let length = 0
  for (const category of categories) {
    const own = signals[category] as Signals[Category] | undefined
    const places = placeOf.get(category)!
    for (const name in own) {
      const value = own[name]
      if (value === null) continue
      const place = places.get(name)
      if (place === undefined) continue
      if (length + 2 > keyCodes.length) return null
      keyCodes[length++] = place
      if (typeof value === 'boolean') keyCodes[length++] = value ? 1 : 2
      else if (typeof value === 'number') keyCodes[length++] = 0x100 + findRangeIndex(value)
      else if (typeof value === 'string') keyCodes[length++] = 0x200 + (textPlaces.get(value) ?? 0)
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
  0x200 + (typeof item === 'string' ? (textPlaces.get(item) ?? 0) : 0)

/** What a pattern must not have for some policies to score it as they score its events. */
export type PatternLimits = {
  /** Signals of which a policy names a text that patterns leave out. */
  hidden: string[]
  /** Numbers whose range holds a policy's limit inside. */
  ranges: { category: Category; signal: string; from: number }[]
}

/** What of patterns does not tell enough for these policies. */
export function findPatternLimits(policies: readonly Policy[]): PatternLimits {
  const hidden = new Set<string>()
  const ranges = new Map<string, PatternLimits['ranges'][number]>()
  for (const { category, signal, weight } of policies.flatMap(listWeights)) {
    if (typeof weight === 'number' || 'whenFalse' in weight) continue
    if ('atLeast' in weight) {
      const from = findRange(weight.atLeast)
      // Below 0 is one range, which does not begin where its number says.
      if (weight.weight === 0 || (from === weight.atLeast && from !== belowZero)) continue
      ranges.set(`${category}.${signal}:${from}`, { category, signal, from })
      continue
    }
    const named = Object.entries(weight.values).flatMap(([text, points]) =>
      points > 0 ? text : [],
    )
    const all = [...named, ...(weight.unless ?? [])]
    if (all.some((text) => !patternTexts.has(text))) hidden.add(`${category}.${signal}`)
  }
  return { hidden: [...hidden].sort(), ranges: [...ranges.values()] }
}

function listWeights({ categories: own }: Policy) {
  return categories.flatMap((category) =>
    Object.entries(own[category].signals).flatMap(([signal, weight]) =>
      findSignal(category, signal) === undefined || weight === 0
        ? []
        : [{ category, signal, weight }],
    ),
  )
}

/** Whether every one of those policies scores this pattern as it scores its events. */
export function isPatternEnough(
  { signals, hidden }: SignalPattern,
  limits: PatternLimits,
): boolean {
  return (
    !hidden.some((path) => limits.hidden.includes(path)) &&
    !limits.ranges.some(({ category, signal, from }) => signals[category][signal] === from)
  )
}

/** Every signal that one of the policies weighs, as `category.signal`, sorted. */
export function listWeighed(policies: readonly Policy[]): string[] {
  const paths = policies.flatMap(listWeights).map(({ category, signal }) => `${category}.${signal}`)
  return [...new Set(paths)].sort()
}
