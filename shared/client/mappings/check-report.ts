/**
 * Checks what a caller gives an adapter. A report of another kind would be mapped to nothing, and
 * nothing measured looks like a phone without any finding: each mistake is a `TypeError` that names
 * adapter and argument and says what is expected.
 */
import { describe, fail, isPromise } from '../check-arguments.ts'

type Members = Record<string, unknown>

/** What a member may be; null and undefined are "not measured" everywhere. */
export type MemberKind = 'boolean' | 'number' | 'object' | 'list' | 'texts'

const kinds: Readonly<Record<MemberKind, { noun: string; holds: (value: unknown) => boolean }>> = {
  boolean: { noun: 'a boolean', holds: (value) => typeof value === 'boolean' },
  number: { noun: 'a number', holds: (value) => typeof value === 'number' },
  object: { noun: 'an object', holds: isPlain },
  list: { noun: 'an array', holds: Array.isArray },
  texts: {
    noun: 'an array of names',
    holds: (value) => Array.isArray(value) && value.every((one) => typeof one === 'string'),
  },
}

/** An object with members; a `Map`, an `Error` or a `Response` has none that an adapter reads. */
function isPlain(value: unknown): value is Members {
  return Object.prototype.toString.call(value) === '[object Object]' && !isPromise(value)
}

/** Whether a class made it: an object of JSON has one prototype at most, of whatever realm. */
function isInstance(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype !== null && Object.getPrototypeOf(prototype) !== null
}

const adviceOf = (value: unknown): string => {
  if (isPromise(value)) return ': await it'
  if (typeof value === 'function') return ': call it'
  return typeof value === 'string' && /^\s*[[{]/.test(value) ? ': parse it' : ''
}

export type ReportShape = {
  /** What the report is, as `the results by method name`. */
  what: string
  /** Members that are read, with what they may be; null for what is checked elsewhere. */
  members: Readonly<Record<string, MemberKind | null>>
  /** Members without which a report says nothing of the phone. */
  required?: readonly string[]
  /** Null in a required member says that there was no answer. */
  mayBeNull?: boolean
  /** Members beyond these are read too, by a table. */
  isOpen?: boolean
}

/**
 * Checks a report.
 * @param name `adapter: argument`
 * @throws TypeError when it is no object with members of these kinds
 */
export function checkReport(name: string, report: unknown, shape: ReportShape): void {
  const { what, members, required = [], mayBeNull = false, isOpen = false } = shape
  if (!isPlain(report)) {
    fail(name, `must be an object, ${what}, not ${describe(report)}${adviceOf(report)}`)
  }
  const known = Object.keys(members)
  const isEmpty = Object.keys(report).length === 0 && !isInstance(report)
  if (!isOpen && !isEmpty && !known.some((member) => member in report)) {
    fail(name, `must be ${what}; it has none of ${known.join(', ')}`)
  }
  if ('platform' in members && report.platform !== 'android' && report.platform !== 'ios') {
    fail(`${name}.platform`, `must be 'android' or 'ios', not ${toShown(report.platform)}`)
  }
  const missing = required.find((member) => report[member] === undefined)
  if (missing !== undefined) fail(`${name}.${missing}`, `is missing: ${what}`)
  const empty = required.find((member) => report[member] === null)
  if (empty !== undefined && !mayBeNull) fail(`${name}.${empty}`, `must not be null: ${what}`)
  for (const [member, kind] of Object.entries(members)) {
    if (kind !== null) checkMember(`${name}.${member}`, report[member], kind)
  }
}

/** @throws TypeError when a member that is there is of another kind */
export function checkMember(name: string, value: unknown, kind: MemberKind): void {
  if (value === undefined || value === null || kinds[kind].holds(value)) return
  fail(name, `must be ${kinds[kind].noun}, not ${describe(value)}${adviceOf(value)}`)
}

/** A platform is no secret, so a wrong one is shown. */
const toShown = (value: unknown): string =>
  typeof value === 'string' ? `'${value.slice(0, 20)}'` : describe(value)

/** Members of one kind. */
export const allOf = (
  names: readonly string[],
  kind: MemberKind | null,
): Record<string, MemberKind | null> => Object.fromEntries(names.map((name) => [name, kind]))
