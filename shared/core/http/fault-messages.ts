/**
 * What a value must be that a zod schema refuses, in words for the people who sent it. zod's own
 * messages name types of JavaScript. The message of a schema, where it has one, comes first.
 */
import type { z } from 'zod'

const kinds: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'a boolean',
  array: 'an array',
  object: 'an object',
  record: 'an object',
}

const units: Record<string, [one: string, more: string]> = {
  string: ['character', 'characters'],
  array: ['item', 'items'],
}

/** For the `error` of `safeParse`. @returns undefined where zod's message is good enough */
export function describeFault(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.input === undefined) return 'is missing'
  switch (issue.code) {
    case 'invalid_type':
      return kinds[issue.expected] && `must be ${kinds[issue.expected]}`
    case 'invalid_value':
      return `must be ${issue.values.length === 1 ? '' : 'one of '}${issue.values.join(', ')}`
    case 'too_small':
      return issue.inclusive === false
        ? `must be more than ${issue.minimum}`
        : describeBound('at least', issue.origin, issue.minimum)
    case 'too_big':
      return issue.inclusive === false
        ? `must be less than ${issue.maximum}`
        : describeBound('at most', issue.origin, issue.maximum)
    case 'unrecognized_keys':
      return 'is not a field of this object'
    default:
      return undefined
  }
}

function describeBound(bound: string, origin: string, limit: number | bigint): string {
  const unit = units[origin]
  if (unit === undefined) return `must be ${bound} ${limit}`
  return `must have ${bound} ${limit} ${unit[Number(limit) === 1 ? 0 : 1]}`
}
