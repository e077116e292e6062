/**
 * Warnings about a valid submission: signals that the catalog does not know, and values that look
 * like a misspelt known one, each with the nearest known name. An edge sends them to sandbox
 * tenants; `di telemetry check` prints them.
 */
import {
  warningNameCharactersMax,
  warningsMax,
  warningTextsMax,
} from '#shared/core/base/limits/telemetry.ts'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { type Declaring, findScoredSignal } from '#shared/core/policies/declared-signals.ts'
import { balancedPolicy } from '#shared/core/policies/presets/balanced.ts'
import { strictPolicy } from '#shared/core/policies/presets/strict.ts'
import {
  type Category,
  categories,
  type Signals,
  type SignalType,
} from '#shared/core/signals/signal-definition.ts'
import { hasType, signalCatalog, typeNames } from '#shared/core/signals/signals.ts'

/** A path into the body, what is wrong with it, and the nearest known name or null. */
export type SignalWarning = { path: string; message: string; nearest: string | null }

/** Names that differ by more than this are not called near. */
const distanceMax = 2

type Known = { plain: string; path: string; category: Category }

const known: Known[] = categories.flatMap((category) =>
  Object.keys(signalCatalog[category]).map((name) => {
    return { plain: toPlain(name), path: `${category}.${name}`, category }
  }),
)

/** Documented values that no policy of the product weighs, by signal. */
const plainValues: Record<string, string[]> = {
  'root.verified_boot_state': ['VERIFIED'],
  'tamper.pi_app_verdict': ['PLAY_RECOGNIZED', 'UNEVALUATED'],
  'tamper.pi_licensing': ['LICENSED', 'UNEVALUATED'],
  'tamper.pi_play_protect': ['NO_ISSUES', 'NO_DATA', 'POSSIBLE_RISK', 'UNEVALUATED'],
  'tamper.pi_app_access_risk': [
    ...['KNOWN_INSTALLED', 'KNOWN_CAPTURING', 'KNOWN_CONTROLLING', 'KNOWN_OVERLAYS'],
    'UNKNOWN_INSTALLED',
  ],
  'tamper.pi_recent_activity': ['LEVEL_1', 'LEVEL_2', 'UNEVALUATED'],
  'tamper.pi_account_activity': ['TYPICAL_BASIC', 'TYPICAL_STRONG', 'UNKNOWN', 'UNEVALUATED'],
}

/** All known values, by signal that has any. */
const knownValues = listKnownValues()

/**
 * Finds what neither the catalog nor the tenant's policy knows in a valid submission, in the order
 * of the categories.
 * @returns at most `warningsMax` warnings, of the first `warningTextsMax` texts
 */
export function findSignalWarnings(signals: Signals, policy: Declaring = {}): SignalWarning[] {
  const warnings: SignalWarning[] = []
  const budget = { texts: warningTextsMax }
  for (const category of categories) {
    for (const name of Object.keys(signals[category])) {
      if (warnings.length === warningsMax) return warnings
      const known = findScoredSignal(policy, category, name)
      const warning =
        known === undefined
          ? warnOfName(category, name)
          : known.declared
            ? warnOfType(known.type, `${category}.${name}`, signals[category][name])
            : warnOfValue(category, name, signals[category][name], budget)
      if (warning !== null) warnings.push(warning)
    }
  }
  for (const name of Object.keys(signals)) {
    if (warnings.length === warningsMax) return warnings
    if (!categories.includes(name as Category)) warnings.push(warnOfCategory(name))
  }
  return warnings
}

function warnOfCategory(name: string): SignalWarning {
  const shown = name.slice(0, warningNameCharactersMax)
  const nearest = name.length > warningNameCharactersMax ? null : findNearest(name, categories)
  const hint = nearest === null ? '' : `; did you mean ${nearest}?`
  const message = `is not a category: it is kept and not scored${hint}`
  return { path: `$.signals.${shown}`, message, nearest }
}

function warnOfName(category: Category, name: string): SignalWarning {
  const shown = name.slice(0, warningNameCharactersMax)
  const nearest = name.length > warningNameCharactersMax ? null : findNearestSignal(category, name)
  const hint = nearest === null ? '' : `; did you mean ${nearest}?`
  const message = `is not in the catalog: it is kept and weighs nothing${hint}`
  return { path: `$.signals.${category}.${shown}`, message, nearest }
}

/** A declared signal of another type is no error, since the catalog does not know it. */
function warnOfType(type: SignalType, path: string, value: unknown): SignalWarning | null {
  if (value === null || hasType(value, type)) return null
  const message = `is declared as ${typeNames[type]}: this value is kept and weighs nothing`
  return { path: `$.signals.${path}`, message, nearest: null }
}

function warnOfValue(
  category: Category,
  name: string,
  value: unknown,
  budget: { texts: number },
): SignalWarning | null {
  const values = knownValues.get(`${category}.${name}`)
  if (values === undefined) return null
  for (const one of Array.isArray(value) ? value : [value]) {
    if (budget.texts-- <= 0) return null
    if (typeof one !== 'string' || one.length > warningNameCharactersMax) continue
    if (values.includes(one)) continue
    const nearest = findNearest(one, values)
    if (nearest === null) continue
    const path = `$.signals.${category}.${name}`
    return { path, message: `has an unknown value; did you mean ${nearest}?`, nearest }
  }
  return null
}

const paths: ReadonlySet<string> = new Set(known.map(({ path }) => path))

/**
 * Checks a signal that a person names for a question, such as `root.su_binary`.
 * @returns null when the catalog has it; else what is wrong, with the nearest known one
 */
export function describeUnknownPath(path: string): string | null {
  if (paths.has(path)) return null
  const shown = path.slice(0, warningNameCharactersMax)
  const plain = toPlain(shown)
  // Without its category, or with another one.
  const alike = known.find((one) => plain.endsWith(one.plain))
  const nearest = alike?.path ?? findNearest(shown, [...paths])
  const hint = nearest === null ? '' : `; did you mean ${nearest}?`
  return `${toVisible(shown)} is not category.signal of the catalog${hint}`
}

/** The name without case and separators: `suBinary` and `su_binary` are alike. */
function toPlain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '')
}

/**
 * The known signal that is nearest to a name: the same letters in this category, in another one,
 * then the fewest changes in this category.
 */
function findNearestSignal(category: Category, name: string): string | null {
  const plain = toPlain(name)
  const alike = known.filter((one) => one.plain === plain)
  const same = alike.find((one) => one.category === category) ?? alike[0]
  if (same !== undefined) return same.path
  let nearest: string | null = null
  let least = toDistanceMax(plain) + 1
  for (const one of known) {
    if (one.category !== category) continue
    const distance = countChanges(plain, one.plain, least - 1)
    if (distance >= least) continue
    least = distance
    nearest = one.path
  }
  return nearest
}

function findNearest(value: string, values: readonly string[]): string | null {
  const plain = toPlain(value)
  let nearest: string | null = null
  // Two letters turn a bad value into a good one: VERIFIED, UNVERIFIED.
  let least = 2
  for (const one of values) {
    const distance = countChanges(plain, toPlain(one), least - 1)
    if (distance >= least) continue
    least = distance
    nearest = one
  }
  return nearest
}

/** Short names are near to everything, so they may differ by less. */
const toDistanceMax = (plain: string): number => (plain.length < 5 ? 1 : distanceMax)

/**
 * Insertions, removals and replacements of letters between two texts.
 * @returns a number above `most` as soon as there must be more; the work is `most` times the length
 */
function countChanges(one: string, other: string, most: number): number {
  if (Math.abs(one.length - other.length) > most) return most + 1
  let before = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let row = 1; row <= one.length; row++) {
    const from = Math.max(1, row - most)
    const to = Math.min(other.length, row + most)
    const now: number[] = new Array(other.length + 1).fill(most + 1)
    if (from === 1) now[0] = row
    let least = now[0]!
    for (let column = from; column <= to; column++) {
      const replaced = before[column - 1]! + (one[row - 1] === other[column - 1] ? 0 : 1)
      const changed = Math.min(replaced, before[column]! + 1, now[column - 1]! + 1)
      now[column] = changed
      if (changed < least) least = changed
    }
    if (least > most) return most + 1
    before = now
  }
  return before[other.length]!
}

function listKnownValues(): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const policy of [balancedPolicy, strictPolicy]) {
    for (const category of categories) {
      for (const [name, weight] of Object.entries(policy.categories[category].signals)) {
        if (typeof weight !== 'object' || !('values' in weight)) continue
        const values = [...Object.keys(weight.values), ...(weight.unless ?? [])]
        const path = `${category}.${name}`
        const others = found.get(path) ?? plainValues[path] ?? []
        found.set(path, [...others, ...values.filter((one) => one !== '(empty)')])
      }
    }
  }
  return found
}
