/**
 * Query strings, read strictly: an unknown parameter, a repeated one, a broken percent-encoding or
 * a bad value is a fault that names its parameter. A typing error in a filter must never quietly
 * widen an answer.
 */
import type { z } from 'zod'
import { Problem, type ProblemDetail } from './problem.ts'

/** Most faults one answer lists, and most of a client's own text it repeats. */
const faultsListedMax = 32
const nameCharactersMax = 64

/**
 * Reads the query of a request against a schema of strings.
 * @param url the request's target as it came, `/path?query`
 * @param schema a strict object whose inputs are strings
 * @throws Problem invalid_query with every fault; `errors[].path` is the parameter
 */
export function readQuery<Query>(url: string, schema: z.ZodType<Query>): Query {
  const { values, faults } = parseQuery(url)
  const parsed = schema.safeParse(values)
  if (!parsed.success) faults.push(...toFaults(parsed.error, faults))
  if (faults.length > 0 || !parsed.success) {
    throw new Problem('invalid_query', 'The query has parameters that cannot be used.', {
      errors: faults.slice(0, faultsListedMax),
    })
  }
  return parsed.data
}

type Query = { values: Record<string, string>; faults: ProblemDetail[] }

/** Cuts a query into its parameters. */
function parseQuery(url: string): Query {
  const values = new Map<string, string>()
  const faults: ProblemDetail[] = []
  const start = url.indexOf('?')
  const query = start === -1 ? '' : (url.slice(start + 1).split('#', 1)[0] ?? '')
  for (const pair of query.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decode(equals === -1 ? pair : pair.slice(0, equals))
    const value = decode(equals === -1 ? '' : pair.slice(equals + 1))
    if (name === null || value === null) {
      faults.push({ path: toPath(name ?? pair), message: 'is not percent-encoded UTF-8' })
    } else if (values.has(name)) {
      faults.push({ path: toPath(name), message: 'must be given only once' })
    } else {
      values.set(name, value)
    }
  }
  // fromEntries defines its keys, so one named __proto__ is a key like any other.
  return { values: Object.fromEntries(values), faults }
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

/** One fault per parameter, and none for one that is faulty already. */
function toFaults(error: z.ZodError, present: ProblemDetail[]): ProblemDetail[] {
  const faults = new Map<string, string>()
  for (const issue of error.issues) {
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys) faults.set(toPath(key), 'is not a parameter of this call')
    } else {
      const path = toPath(String(issue.path[0] ?? ''))
      if (!faults.has(path)) faults.set(path, issue.message)
    }
  }
  for (const { path } of present) faults.delete(path)
  return [...faults].map(([path, message]) => ({ path, message }))
}
