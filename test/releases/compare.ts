/**
 * What an upgrade or a rollback would trip over while processes of two releases run side by side.
 * Each difference is a line that names its place.
 */
import { isDeepStrictEqual } from 'node:util'
import { isObject } from '#shared/core/telemetry/submission.ts'

/**
 * Compares what is written and read now with what the recorded release writes and reads. More
 * optional members are no difference, unless the recorded reader refuses unknown ones.
 * @param recorded JSON Schema
 */
export function compareSchemas(recorded: unknown, present: unknown, place: string): string[] {
  if (!isNested(recorded) || !isNested(present)) {
    if (isDeepStrictEqual(recorded, present)) return []
    return [`${place}: ${toText(recorded)} is now ${toText(present)}`]
  }
  const keys = new Set([...Object.keys(recorded), ...Object.keys(present)])
  return [...keys].flatMap((key) =>
    key === 'properties'
      ? compareMembers(recorded, present, place)
      : compareSchemas(recorded[key], present[key], `${place} ${key}`),
  )
}

type Nested = Record<string, unknown>

/** An object, or a list of objects; a list of names is compared as a whole. */
const isNested = (value: unknown): value is Nested =>
  isObject(value) || (Array.isArray(value) && value.every(isObject))

function compareMembers(recorded: Nested, present: Nested, place: string): string[] {
  const before = (recorded.properties ?? {}) as Nested
  const now = (present.properties ?? {}) as Nested
  const isStrict = recorded.additionalProperties === false
  const names = new Set([...Object.keys(before), ...(isStrict ? Object.keys(now) : [])])
  return [...names].flatMap((name) => compareSchemas(before[name], now[name], `${place}.${name}`))
}

const toText = (value: unknown): string => (value === undefined ? 'missing' : JSON.stringify(value))

/** A table or view. */
export type Table = {
  /** Types by name. */
  columns: Record<string, string>
  /** Columns that a writer cannot leave out. */
  required: string[]
  /** Definitions of keys and checks; in ClickHouse the engine and the order. */
  constraints: string[]
}
export type Tables = Record<string, Table>

/** Compares the present schema of a store with the recorded one: it may only have more. */
export function compareTables(recorded: Tables, present: Tables): string[] {
  return Object.entries(recorded).flatMap(([name, before]) => {
    const now = present[name]
    if (now === undefined) return [`${name} is gone`]
    return [
      ...compareColumns(before, now).map((difference) => `${name}.${difference}`),
      ...compareConstraints(before, now).map((difference) => `${name}: ${difference}`),
    ]
  })
}

function compareColumns(before: Table, now: Table): string[] {
  const changed = Object.entries(before.columns).flatMap(([column, type]) => {
    const found = now.columns[column]
    if (found === undefined) return [`${column} is gone`]
    return found === type ? [] : [`${column}: ${type} is now ${found}`]
  })
  const required = now.required.filter((column) => !before.required.includes(column))
  return [...changed, ...required.map((column) => `${column} is missing in older inserts`)]
}

/** Older processes may write what a new constraint refuses, unless it is one of new columns. */
function compareConstraints(before: Table, now: Table): string[] {
  const added = Object.keys(now.columns).filter((column) => !(column in before.columns))
  const gone = before.constraints.filter((one) => !now.constraints.includes(one))
  const fresh = now.constraints
    .filter((one) => !before.constraints.includes(one))
    .filter((one) => !added.some((column) => new RegExp(`\\b${column}\\b`).test(one)))
  return [...gone.map((one) => `${one} is gone`), ...fresh.map((one) => `${one} is new`)]
}

/** @returns the recorded permissions that are missing now; an older process still needs them */
export function findRevoked(recorded: unknown, present: unknown, place: string): string[] {
  if (Array.isArray(recorded)) {
    const granted = new Set(Array.isArray(present) ? present : [])
    return (recorded as string[])
      .filter((one) => !granted.has(one) && !granted.has(toAllColumns(one)))
      .map((one) => `${place}: ${one} is gone`)
  }
  if (!isObject(recorded)) return isDeepStrictEqual(recorded, present) ? [] : [`${place} is gone`]
  const now = isObject(present) ? present : {}
  return Object.keys(recorded).flatMap((key) =>
    findRevoked(recorded[key], now[key], `${place} ${key}`),
  )
}

/** `update` for `update(column)`. */
const toAllColumns = (privilege: string): string => privilege.replace(/\(.*$/, '')
