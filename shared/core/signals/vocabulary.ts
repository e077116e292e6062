/**
 * The vocabularies of signals: which spellings of a value score as it. Stored bodies keep the
 * spelling that was sent. Both compilers of policies use `withSpellings`, so they agree.
 */
import type { SignalWeight } from '#shared/core/policies/policy.ts'
import {
  categories,
  type SignalCategory,
  type SignalDefinition,
  serverCategories,
} from './signal-definition.ts'
import { findSignal, fullCatalog } from './signals.ts'

/** A word in the cases that SDKs and platforms use: `SELF_SIGNED`, `selfSigned`, `SelfSigned`. */
function toCases(word: string): string[] {
  const parts = word.toLowerCase().split('_')
  const pascal = parts.map((part) => part.charAt(0).toUpperCase() + part.slice(1)).join('')
  const camel = pascal.charAt(0).toLowerCase() + pascal.slice(1)
  return [word, word.toLowerCase(), word.toUpperCase(), pascal, camel]
}

const definitions = [...categories, ...serverCategories].flatMap((category) =>
  Object.entries<SignalDefinition>(fullCatalog[category]).flatMap(([name, { values }]) =>
    values === undefined ? [] : [{ path: `${category}.${name}`, values }],
  ),
)

/** The value that each spelling means, by signal with a vocabulary. */
const meanings: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map(
  definitions.map(({ path, values }) => {
    const spellings = Object.entries(values).flatMap(([value, aliases]) =>
      [value, ...aliases].flatMap(toCases).map((spelling) => [spelling, value] as const),
    )
    return [path, new Map(spellings)]
  }),
)

/** Every spelling of every value, once. */
export const allSpellings: readonly string[] = [
  ...new Set([...meanings.values()].flatMap((spellings) => [...spellings.keys()])),
]

/** Whether a text is one of a signal's values, in any spelling. Every text of a free signal is. */
export function isKnownValue(category: SignalCategory, name: string, text: string): boolean {
  return meanings.get(`${category}.${name}`)?.has(text) ?? true
}

/** The value that a text means; the text itself where the vocabulary does not have it. */
export const toMeaning = (category: SignalCategory, name: string, text: string): string =>
  meanings.get(`${category}.${name}`)?.get(text) ?? text

/** The values of a signal; null when it can have any. */
export function listValues(category: SignalCategory, name: string): string[] | null {
  const values = findSignal(category, name)?.values
  return values === undefined ? null : Object.keys(values)
}

/** A weight that names each spelling of the values that it names. What a policy names itself stays. */
export function withSpellings(
  category: SignalCategory,
  name: string,
  weight: SignalWeight,
): SignalWeight {
  const spellings = meanings.get(`${category}.${name}`)
  if (spellings === undefined || typeof weight === 'number' || !('values' in weight)) return weight
  const values = { ...weight.values }
  const unless = new Set(weight.unless)
  for (const [spelling, value] of spellings) {
    if (Object.hasOwn(weight.values, value)) values[spelling] ??= weight.values[value]!
    if (unless.has(value)) unless.add(spelling)
  }
  return { values, ...(weight.unless === undefined ? {} : { unless: [...unless] }) }
}
