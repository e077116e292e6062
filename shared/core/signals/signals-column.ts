/**
 * Encodes signals for the JSON column of ClickHouse, which makes columns for every shape of an
 * array: a few hundred bodies with arrays of objects make parts of more than 20,000 files. So a
 * list of plain values of one type stays a list, and any other array becomes its JSON text. The
 * stored body keeps the original.
 */
import type { ServerSignals, Signals } from './signal-definition.ts'

/** @returns the JSON text of the column, an object */
export function encodeSignals(signals: Signals | ServerSignals): string {
  if (holdsPlainLists(signals)) return JSON.stringify(signals)
  return JSON.stringify(signals, (_key, value: unknown) =>
    Array.isArray(value) && !isPlainList(value) ? JSON.stringify(value) : value,
  )
}

function holdsPlainLists(value: object): boolean {
  for (const item of Object.values(value)) {
    if (typeof item !== 'object' || item === null) continue
    if (Array.isArray(item) ? !isPlainList(item) : !holdsPlainLists(item)) return false
  }
  return true
}

/** Whether a list has strings, numbers or booleans of one type; `null` may be among them. */
export function isPlainList(list: readonly unknown[]): boolean {
  let kind: string | undefined
  for (const item of list) {
    if (item === null) continue
    const own = typeof item
    if (own === 'object' || (kind !== undefined && own !== kind)) return false
    kind = own
  }
  return true
}
