/**
 * Parses JSON bodies of routes. A broken one is a 400 that names the byte, in the words that ingest
 * has for it.
 */
import type { FastifyInstance } from 'fastify'
import { jsonDepthMax } from '#shared/core/base/limits/telemetry.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { scanBody } from '#shared/core/telemetry/body-scan.ts'
import { describeJsonFault, findJsonErrorOffset } from '#shared/core/telemetry/json/json-syntax.ts'

/** Replaces the parser of fastify, which does not say where a body is broken. */
export function parseJsonBodies(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    // It reads bytes as well, which its type does not say.
    parse(request, body as unknown as string, (error, value) => {
      if (error === null) done(null, value)
      else done(toInvalidBody(body as Buffer))
    })
  })
}

function toInvalidBody(body: Buffer): Problem {
  const errors = [{ path: '$', message: describeFault(body) }]
  return new Problem('invalid_body', 'The request body cannot be read.', { errors })
}

function describeFault(body: Buffer): string {
  // A deeper one would exhaust the stack of what finds the byte.
  if (scanBody(body).depth > jsonDepthMax) return 'is not valid JSON'
  if (findJsonErrorOffset(body) !== null) return describeJsonFault(body)
  return 'has a key that is not allowed: __proto__, or constructor with prototype in it'
}
