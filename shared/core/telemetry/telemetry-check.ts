/**
 * The quick yes: one walk over a parsed body that recognises a submission without any fault, which
 * is nearly every one. It says no to anything it is not sure of, and then the schema and the full
 * walk of telemetry.ts have the last word: this file decides nothing, it only saves their work.
 */
import {
  categoryKeysMax,
  clientFlagsMax,
  idCharactersMax,
  metaCharactersMax,
} from '#shared/core/base/limits.ts'
import {
  isPlainNumber,
  type SignalCategory,
  type SignalType,
  signalCatalog,
} from '#shared/core/signals/signals.ts'

// C0 and C1 control characters and DEL: never part of an id, and unprintable in every tool.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
export const controlCharacters = /[\u0000-\u001f\u007f-\u009f]/

/** Keys that other languages' object models act upon. */
export function isForbiddenKey(key: string): boolean {
  return key === '__proto__' || key === 'constructor' || key === 'prototype'
}

type Category = { name: SignalCategory; types: Map<string, SignalType> }

const categories = new Map<string, Category>(
  Object.entries(signalCatalog).map(([name, signals]) => [
    name,
    {
      name: name as SignalCategory,
      types: new Map(Object.entries(signals).map(([signal, { type }]) => [signal, type])),
    },
  ]),
)

/** What is left to be found wrong once a count is wrong: nothing adds up to it. */
const notPlain = Number.NaN

/** What a check came across. */
export type Findings = {
  /** Signals that the catalog does not know. They are kept, and worth a look. */
  unknownSignals: number
  /** Whether a number outside the catalog's signals is one that a double cannot be sure to hold. */
  inexactNumbers: boolean
}

/**
 * Whether a body is beyond doubt a valid submission.
 * @param value the parsed body, known to be an object whose tenant is the verified one
 * @param members how many object members the body's text has, to find duplicate keys
 * @param findings added to
 * @returns false when it is not, or when it takes a closer look to tell
 */
export function isPlainlyValid(
  value: Record<string, unknown>,
  members: number,
  findings: Findings,
): boolean {
  let seen = 0
  let required = 0
  for (const key in value) {
    const item = value[key]
    seen++
    switch (key) {
      case 'tenant_id':
        required++
        break
      case 'device_id':
      case 'session_id':
        if (!isId(item)) return false
        required++
        break
      case 'user_id':
      case 'account_id':
        if (item !== undefined && !isId(item)) return false
        break
      case 'sdk_meta':
        seen += countMeta(item, findings)
        required++
        break
      case 'scorer':
        seen += countScorer(item, findings)
        required++
        break
      case 'signals':
        seen += countSignals(item, findings)
        required++
        break
      default:
        if (isForbiddenKey(key)) return false
        seen += countMembers(item, findings)
    }
  }
  return required === 6 && seen === members
}

/** Whether a value is an id that clients may give. */
export function isId(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    value.length > 0 &&
    value.length <= idCharactersMax &&
    !controlCharacters.test(value)
  )
}

/** Whether a value is a text of the submission's `sdk_meta` or `scorer`. */
export function isMeta(value: unknown): boolean {
  return typeof value === 'string' && value.length <= metaCharactersMax
}

/** Whether a value is an object of JSON: no list, and not null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function countMeta(value: unknown, findings: Findings): number {
  if (!isObject(value)) return notPlain
  if (!isMeta(value.sdk_version) || !isMeta(value.platform) || !isMeta(value.batch_type)) {
    return notPlain
  }
  return countMembers(value, findings)
}

function countScorer(value: unknown, findings: Findings): number {
  if (!isObject(value)) return notPlain
  const { rasp_score: score, rasp_action: action, rasp_flags: flags } = value
  if (typeof score !== 'number' || !isMeta(action)) return notPlain
  if (!Array.isArray(flags) || flags.length > clientFlagsMax || !flags.every(isMeta)) {
    return notPlain
  }
  return countMembers(value, findings)
}

function countSignals(value: unknown, findings: Findings): number {
  if (!isObject(value)) return notPlain
  let seen = 0
  let found = 0
  for (const key in value) {
    seen++
    const category = categories.get(key)
    if (category !== undefined) {
      found++
      seen += countCategory(value[key], category.types, findings)
    } else {
      if (isForbiddenKey(key)) return notPlain
      seen += countMembers(value[key], findings)
    }
  }
  return found === categories.size ? seen : notPlain
}

function countCategory(value: unknown, types: Map<string, SignalType>, findings: Findings): number {
  if (!isObject(value)) return notPlain
  let keys = 0
  let nested = 0
  for (const key in value) {
    keys++
    const item = value[key]
    const type = types.get(key)
    if (type === undefined) {
      findings.unknownSignals++
      if (isForbiddenKey(key)) return notPlain
      nested += countMembers(item, findings)
    } else if (type === 'strings') {
      if (item !== null && !isStrings(item)) return notPlain
    } else if (item !== null && typeof item !== type) {
      return notPlain
    } else if (type === 'number' && item !== null && !isPlainNumber(item as number)) {
      return notPlain
    }
  }
  return keys > categoryKeysMax ? notPlain : keys + nested
}

function isStrings(value: unknown): boolean {
  if (!Array.isArray(value)) return false
  for (const item of value) if (typeof item !== 'string') return false
  return true
}

/** Object members at any depth of a value that nothing is known of; NaN for a forbidden key. */
function countMembers(value: unknown, findings: Findings): number {
  if (typeof value === 'number') {
    if (!isPlainNumber(value)) findings.inexactNumbers = true
    return 0
  }
  if (typeof value !== 'object' || value === null) return 0
  let seen = 0
  if (Array.isArray(value)) {
    for (const item of value) seen += countMembers(item, findings)
    return seen
  }
  for (const key in value) {
    if (isForbiddenKey(key)) return notPlain
    seen += 1 + countMembers((value as Record<string, unknown>)[key], findings)
  }
  return seen
}

/** What a valid submission has beyond the catalog. */
export function findMore(value: Record<string, unknown>): Findings {
  const findings: Findings = { unknownSignals: 0, inexactNumbers: false }
  isPlainlyValid(value, Number.NaN, findings)
  return findings
}
