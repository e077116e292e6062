/**
 * Parses and checks query strings strictly: an unknown or repeated parameter, a broken
 * percent-encoding and a bad value are faults that name their parameter. A typing error in a filter
 * must not silently widen a result.
 */
import { z } from 'zod'
import { describeFault } from './fault-messages.ts'
import { Problem, type ProblemDetail } from './problem.ts'

/** The most faults that one response lists. */
export const faultsListedMax = 32
/** The most characters of a client's parameter name that a response repeats. */
const nameCharactersMax = 64

/**
 * A query before it is checked: the first value of each parameter, and the faults of its syntax.
 */
export type ParsedQuery = { values: Record<string, string>; faults: ProblemDetail[] }

/**
 * Splits a query string into its parameters.
 * @param query the text after `?`; a fragment is ignored
 */
export function parseQuery(query: string): ParsedQuery {
  const values = new Map<string, string>()
  const faults: ProblemDetail[] = []
  for (const pair of query.split('#', 1)[0]!.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decode(equals === -1 ? pair : pair.slice(0, equals))
    const value = decode(equals === -1 ? '' : pair.slice(equals + 1))
    if (name === null || value === null) {
      faults.push({ path: toPath(name ?? pair), message: 'is not percent-encoded UTF-8' })
    } else if (value.includes('\0')) {
      faults.push({ path: toPath(name), message: nulFault })
    } else if (values.has(name)) {
      faults.push({ path: toPath(name), message: 'must be given only once' })
    } else {
      values.set(name, value)
    }
  }
  // fromEntries defines its keys, so a parameter named __proto__ is a key like any other.
  return { values: Object.fromEntries(values), faults }
}

/** No text of ours has this character, and PostgreSQL cannot store it. */
export const nulFault = 'must not contain the character U+0000'

/** Parameters that are a range together, in every list that has them. */
const ranges = [
  { least: 'from', most: 'to', fault: 'must not be before `from`' },
  { least: 'begun_from', most: 'begun_to', fault: 'must not be before `begun_from`' },
  { least: 'min_score', most: 'max_score', fault: 'must not be below `min_score`' },
] as const

/** @param query parsed; an empty range is none of the faults */
function findInverted(query: unknown): ProblemDetail[] {
  const values = query as Record<string, unknown>
  return ranges.flatMap(({ least, most, fault }) => {
    const [low, high] = [values[least], values[most]]
    const isInverted = typeof low === 'number' && typeof high === 'number' && high < low
    return isInverted ? [{ path: most, message: fault }] : []
  })
}

/**
 * Checks a query against a schema of strings.
 * @param schema a strict object whose inputs are strings
 * @returns the parsed values, or a problem `invalid_query` that lists each faulty parameter once
 */
export function checkQuery<Query>(
  { values, faults }: ParsedQuery,
  schema: z.ZodType<Query>,
): { value: Query } | { error: Problem } {
  const parsed = schema.safeParse(values, { error: describeFault })
  const further = parsed.success ? findInverted(parsed.data) : toFaults(parsed.error, faults)
  if (parsed.success && faults.length + further.length === 0) return { value: parsed.data }
  const all = [...faults, ...further]
  const isUnknown = all.some(({ message }) => message === unknownParameter)
  const hint = isUnknown && schema instanceof z.ZodObject ? listParameters(schema) : ''
  return { error: toInvalidQuery(all.slice(0, faultsListedMax), hint) }
}

/** The problem of a query with faulty parameters. @param hint what the detail adds */
export function toInvalidQuery(errors: ProblemDetail[], hint = ''): Problem {
  const detail = `The query has parameters that cannot be used.${hint}`
  return new Problem('invalid_query', detail, { errors })
}

const unknownParameter = 'is not a parameter of this call'

function listParameters({ shape }: z.ZodObject): string {
  const names = Object.keys(shape)
  return names.length === 0 ? ' This call takes none.' : ` This call takes ${names.join(', ')}.`
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return null
  }
}

function toPath(name: string): string {
  return name.slice(0, nameCharactersMax)
}

/** One fault per parameter, and none for a parameter that has one already. */
function toFaults(error: z.ZodError, present: ProblemDetail[]): ProblemDetail[] {
  const faults = new Map<string, string>()
  for (const issue of error.issues) {
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys) faults.set(toPath(key), unknownParameter)
    } else {
      const path = toPath(String(issue.path[0] ?? ''))
      if (!faults.has(path)) faults.set(path, issue.message)
    }
  }
  for (const { path } of present) faults.delete(path)
  return [...faults].map(([path, message]) => ({ path, message }))
}
