/**
 * Warnings about the signals of a valid submission: names that the catalog does not know, and
 * values outside a vocabulary, each with the nearest known one.
 */
import {
  warningNameCharactersMax,
  warningsMax,
  warningTextsMax,
} from '#shared/core/base/limits/telemetry.ts'
import { countChanges } from '#shared/core/base/text-distance.ts'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { type Declaring, findScoredSignal } from '#shared/core/policies/declared-signals.ts'
import {
  type Category,
  categories,
  type Platform,
  platforms,
  type Signals,
  type SignalType,
} from '#shared/core/signals/signal-definition.ts'
import {
  findSignal,
  fullCatalog,
  hasType,
  signalCatalog,
  typeNames,
} from '#shared/core/signals/signals.ts'
import { isKnownValue, listValues } from '#shared/core/signals/vocabulary.ts'
import { findNearest, toChangesMax, toPlain } from './warnings/nearest-name.ts'

/** What is wrong, for programs. */
export const warningCodes = [
  'unknown_signal',
  'many_unknown_signals',
  'unknown_category',
  'unknown_value',
  'wrong_type',
  'unknown_member',
  'unreadable_value',
  'out_of_range',
  'placeholder_id',
  'same_id',
  'unusual_id',
  'other_platform',
  'score_mismatch',
  'no_signals',
  'evidence_rejected',
] as const

/** A path into the body, what is wrong with it, and the nearest known name or null. */
export type SignalWarning = {
  path: string
  code: (typeof warningCodes)[number]
  message: string
  nearest: string | null
}

type Known = { plain: string; path: string; category: Category }

const known: Known[] = categories.flatMap((category) =>
  Object.keys(signalCatalog[category]).map((name) => {
    return { plain: toPlain(name), path: `${category}.${name}`, category }
  }),
)

/**
 * Finds what neither the catalog nor the tenant's policy knows in a valid submission, in the order
 * of the categories.
 * @param platform as the SDK spells it; a signal of another platform is a slip
 * @returns at most `warningsMax` warnings, of the first `warningTextsMax` texts
 */
export function findSignalWarnings(
  signals: Signals,
  policy: Declaring = {},
  platform = '',
): SignalWarning[] {
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
            : (warnOfPlatform(category, name, signals[category][name], platform) ??
              warnOfValue(category, name, signals[category][name], budget))
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
  return { path: `$.signals.${shown}`, code: 'unknown_category', message, nearest }
}

function warnOfName(category: Category, name: string): SignalWarning {
  const shown = name.slice(0, warningNameCharactersMax)
  const nearest = name.length > warningNameCharactersMax ? null : findNearestSignal(category, name)
  const hint = nearest === null ? '' : `; did you mean ${nearest}?`
  const message = `is not in the catalog: it is kept and weighs nothing${hint}`
  return { path: `$.signals.${category}.${shown}`, code: 'unknown_signal', message, nearest }
}

/** A declared signal of another type is no error, since the catalog does not know it. */
function warnOfType(type: SignalType, path: string, value: unknown): SignalWarning | null {
  if (value === null || hasType(value, type)) return null
  const message = `is declared as ${typeNames[type]}: this value is kept and weighs nothing`
  return { path: `$.signals.${path}`, code: 'wrong_type', message, nearest: null }
}

function warnOfPlatform(
  category: Category,
  name: string,
  value: unknown,
  platform: string,
): SignalWarning | null {
  const { platforms } = findSignal(category, name)!
  const isElsewhere = isPlatform(platform) && !platforms.includes(platform)
  if (!isElsewhere || value === null || value === false) return null
  const message = `is a signal of ${platforms.join(' and ')}: on ${platform} it weighs all the same`
  const path = `$.signals.${category}.${name}`
  return { path, code: 'other_platform', message, nearest: null }
}

const isPlatform = (text: string): text is Platform =>
  (platforms as readonly string[]).includes(text)

function warnOfValue(
  category: Category,
  name: string,
  value: unknown,
  budget: { texts: number },
): SignalWarning | null {
  const values = listValues(category, name)
  if (values === null) return null
  for (const one of Array.isArray(value) ? value : [value]) {
    if (budget.texts-- <= 0) return null
    if (typeof one !== 'string' || isKnownValue(category, name, one)) continue
    const nearest = one.length > warningNameCharactersMax ? null : findNearest(one, values)
    const hint = nearest === null ? `it can be ${values.join(', ')}` : `did you mean ${nearest}?`
    const path = `$.signals.${category}.${name}`
    const message = `has a value that scores nothing; ${hint}`
    return { path, code: 'unknown_value', message, nearest }
  }
  return null
}

const paths: ReadonlySet<string> = new Set(
  Object.entries(fullCatalog).flatMap(([category, signals]) =>
    Object.keys(signals).map((name) => `${category}.${name}`),
  ),
)

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
  let least = toChangesMax(plain) + 1
  for (const one of known) {
    if (one.category !== category) continue
    const changes = countChanges(plain, one.plain, least - 1)
    if (changes >= least) continue
    least = changes
    nearest = one.path
  }
  return nearest
}
