/** Routes whose last path parameter is an id with slashes that a proxy has decoded. */
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { pathPartCharactersMax } from '#shared/core/base/limits/http.ts'
import { Problem } from '#shared/core/http/problem.ts'

/** The rest of the path as the parameter `name`. */
export function decodedPath<Schema extends z.ZodType>(name: string, schema: Schema) {
  return z.preprocess((params) => ({ [name]: (params as { '*': string })['*'] }), schema)
}

/** The router bounds a part of a path, but not the rest of one. @throws Problem uri_too_long */
export async function requireShortPath({ params }: FastifyRequest): Promise<void> {
  if ((params as { '*': string })['*'].length <= pathPartCharactersMax) return
  throw new Problem('uri_too_long', 'A part of the address is too long.')
}
