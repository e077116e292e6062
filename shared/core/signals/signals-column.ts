/**
 * Signals as the JSON column of ClickHouse gets them. What a client may nest is bounded by depth
 * and keys, but every shape an array can have becomes columns of its own there: a few hundred
 * bodies with arrays of objects made parts of more than 20,000 files. So a list of plain values of
 * one type stays a list, and any other array becomes its JSON text. The stored body has it as it
 * came.
 */
import type { Signals } from './signal-definition.ts'

/** @returns JSON text of an object */
export function encodeSignals(signals: Signals): string {
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

/** Strings, numbers or booleans, all of one kind; `null` goes with any. */
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
