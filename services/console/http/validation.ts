/**
 * Turns what zod says of a request into our problems: every fault with its path, bodies as JSON
 * paths and parameters by name, in one 400.
 */
import type { FastifySchemaCompiler } from 'fastify'
import type { z } from 'zod'
import { Problem, type ProblemCode } from '#shared/core/http/problem.ts'

const parts: Record<string, { code: ProblemCode; detail: string }> = {
  body: { code: 'invalid_body', detail: 'The request body is not valid.' },
  querystring: { code: 'invalid_query', detail: 'The query is not valid.' },
  params: { code: 'invalid_path', detail: 'The path is not valid.' },
}

/** For fastify's `setValidatorCompiler`. */
export const problemValidatorCompiler: FastifySchemaCompiler<z.ZodType> = ({
  schema,
  httpPart,
}) => {
  const part = httpPart ?? 'body'
  return (value: unknown) => {
    const parsed = schema.safeParse(value)
    if (parsed.success) return { value: parsed.data }
    const { code, detail } = parts[part] ?? { code: 'malformed_request', detail: 'Not valid.' }
    const errors = parsed.error.issues.map((issue) => ({
      path: toPath(part, issue),
      message: issue.message,
    }))
    return { error: new Problem(code, detail, { errors }) }
  }
}

function toPath(part: string, issue: z.core.$ZodIssue): string {
  // An unknown key is named itself, not the object it is in.
  const extra = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : []
  const path = [...issue.path, ...extra]
  if (part !== 'body') return path.join('.')
  return path.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : `${text}.${String(key)}`),
    '$',
  )
}
