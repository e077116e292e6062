/**
 * Whether an event lacks what its policy requires, as a ClickHouse expression: the counterpart of
 * required-signals.ts.
 */
import type { Required, Requirement } from '#shared/core/scoring/required-signals.ts'
import { categories } from '#shared/core/signals/signal-definition.ts'
import type { Source } from './scoring-sql-points.ts'
import { quoteText } from './scoring-sql-text.ts'

/** @returns a condition; null when nothing is required */
export function toMissingCondition(requirement: Requirement | null, source: Source): string | null {
  if (requirement === null) return null
  const measured = requirement.signals.map((one) =>
    source === 'body' ? isMeasuredInBody(one) : isMeasuredInColumns(one),
  )
  return `not (${measured.join(' and ')})`
}

function isMeasuredInColumns({ category, name }: Required): string {
  if (name !== null) return `dynamicType(signals.${category}.${name}) != 'None'`
  return `bitTest(filled_categories, ${categories.indexOf(category)})`
}

function isMeasuredInBody({ category, name }: Required): string {
  const at = `body, 'signals', ${quoteText(category)}`
  if (name !== null) return `(JSONType(${at}, ${quoteText(name)}) != 'Null')`
  return `arrayExists(x -> x.2 != 'null', JSONExtractKeysAndValuesRaw(${at}))`
}

/** The categories that a pattern fills, as `filled_categories` of an event has them. */
export const filledByPattern = `toUInt8(${categories
  .map((category, bit) => {
    const begins = quoteText(`${category}.`)
    return `arrayExists(p -> startsWith(p, ${begins}), JSONAllPaths(signals)) * ${2 ** bit}`
  })
  .join(' + ')})`
