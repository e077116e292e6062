/**
 * Validates requests against the zod schemas of their routes. A request that does not match is a
 * 400 that lists every fault: of a body by JSON path, of a parameter by its name.
 */
import type { FastifySchemaCompiler } from 'fastify'
import type { z } from 'zod'
import { describeFault } from '#shared/core/http/fault-messages.ts'
import { Problem, type ProblemCode } from '#shared/core/http/problem.ts'
import {
  checkQuery,
  faultsListedMax,
  nulFault,
  type ParsedQuery,
} from '#shared/core/http/query-string.ts'

const parts: Record<string, { code: ProblemCode; detail: string }> = {
  body: { code: 'invalid_body', detail: 'The request body is not valid.' },
  params: { code: 'invalid_path', detail: 'The path has parameters that cannot be used.' },
}

const noBody = { path: '$', message: 'must be JSON, and the request has no body' }

/**
 * For fastify's `setValidatorCompiler`. The server parses queries with `parseQuery`, and this
 * checks the result, so an unknown or repeated parameter is a fault.
 */
export const validatorCompiler: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  if (httpPart === 'querystring') return (query: ParsedQuery) => checkQuery(query, schema)
  const part = httpPart ?? 'body'
  return (value: unknown) => {
    const nul = part === 'params' ? findNul(value as Record<string, string>) : undefined
    if (nul !== undefined) {
      return { error: new Problem('invalid_path', parts.params!.detail, { errors: [nul] }) }
    }
    const parsed = schema.safeParse(value, { error: describeFault })
    if (parsed.success) return { value: parsed.data }
    const { code, detail } = parts[part] ?? { code: 'malformed_request', detail: 'Not valid.' }
    if (part === 'body' && (value === undefined || value === null)) {
      return { error: new Problem(code, detail, { errors: [noBody] }) }
    }
    const issues = parsed.error.issues.flatMap(toIssues)
    const errors = issues.slice(0, faultsListedMax).map((issue) => ({
      path: toPath(part, issue),
      message: issue.message,
    }))
    return { error: new Problem(code, detail, { errors }) }
  }
}

function findNul(params: Record<string, string>) {
  const found = Object.entries(params).find(([, value]) => value.includes('\0'))
  return found && { path: found[0], message: nulFault }
}

/** Of a body that can have two forms, the faults of the one that it has. */
function toIssues(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union') return [issue]
  const isOther = (inner: z.core.$ZodIssue) =>
    inner.path.length === 0 && inner.code === 'invalid_type'
  const meant = issue.errors.find((form) => form.length > 0 && !form.some(isOther))
  return meant?.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] })) ?? [issue]
}

function toPath(part: string, issue: z.core.$ZodIssue): string {
  // An unknown key is named itself, not the object that contains it.
  const unknownKey = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : []
  const path = [...issue.path, ...unknownKey]
  if (part !== 'body') return path.join('.')
  return path.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : `${text}.${String(key)}`),
    '$',
  )
}
