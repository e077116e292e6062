/**
 * Conditional requests: an answer of a route with `schema.conditional` has an `ETag`, and a client
 * that sends it as `If-None-Match` gets a 304 without a body while the answer is the same. The tag
 * is made from the body itself, so no change is missed.
 */
import type { FastifyInstance } from 'fastify'
import { hasEntityTag, toEntityTag } from '#shared/core/http/entity-tag.ts'
import { type Json, toHeaderRef } from './openapi-problems.ts'

declare module 'fastify' {
  interface FastifySchema {
    /** Whether answers have an entity tag; for GET routes of one resource. */
    conditional?: true
  }
}

/** Adds the hook to a scope. Compression comes after it, since a route's own hooks run later. */
export function addConditionalRequests(scope: FastifyInstance): void {
  scope.addHook('onSend', async (request, reply, payload) => {
    if (request.routeOptions.schema?.conditional !== true || reply.statusCode !== 200) return
    // An answer that is sent in pieces is never in memory as a whole.
    if (typeof payload !== 'string') return
    const tag = toEntityTag(payload)
    reply.header('etag', tag)
    const known = request.headers['if-none-match']
    if (known === undefined || !hasEntityTag(known, tag)) return
    reply.code(304).removeHeader('content-type')
    return ''
  })
}

/** The parameter and the header of documents. */
export const ifNoneMatchParameter: Json = {
  name: 'If-None-Match',
  in: 'header',
  description:
    'The `ETag` of an earlier answer. While the answer is the same, the response is a 304 without a body.',
  schema: {
    type: 'string',
    pattern: '^(?:\\*|(?:W/)?"[!#-~]*"(?:, *(?:W/)?"[!#-~]*")*)$',
    examples: ['W/"kZ0m1x7vQf3cT5hJ8sPq2A"'],
  },
}
export const entityTagHeaders: Json = {
  EntityTag: {
    description: 'Names the content of the answer; weak, since it may be compressed.',
    schema: { type: 'string', examples: ['W/"kZ0m1x7vQf3cT5hJ8sPq2A"'] },
  },
}
export const entityTagHeader = { ETag: toHeaderRef('EntityTag') }
