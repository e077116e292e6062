/**
 * Reads the bodies of routes, which are JSON or empty. A broken one is a 400 that names the byte,
 * in the words that ingest has for it.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { jsonDepthMax } from '#shared/core/base/limits/telemetry.ts'
import { Problem, type ProblemDetail } from '#shared/core/http/problem.ts'
import { scanBody } from '#shared/core/telemetry/body-scan.ts'
import { findDuplicateMember } from '#shared/core/telemetry/json/duplicate-member.ts'
import {
  describeJsonFault,
  findJsonErrorOffset,
  findTextFault,
} from '#shared/core/telemetry/json/json-syntax.ts'
import type { BodyBudget } from './incoming/body-budget.ts'
import { type BodyFault, receiveBody } from './incoming/receive-body.ts'
import { framingFaults } from './incoming/request-framing.ts'

/**
 * Replaces the parsers of fastify, which keep a body as a list of its pieces and do not say where
 * it is broken. An empty body is no body, whatever its content type.
 */
export function readBodies(app: FastifyInstance, budget: BodyBudget): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', (request, _payload, done) => {
    const bytesMax = request.routeOptions.bodyLimit
    const coding = request.headers['content-encoding'] ?? 'identity'
    if (coding.toLowerCase() !== 'identity') return done(unsupportedCoding)
    receiveBody(request.raw, { bytesMax, budget }, (body) => {
      if (typeof body === 'string') done(bodyFaults[body])
      else if (body.length === 0) done(null, undefined)
      else {
        // It reads bytes as well, which its type does not say.
        parse(request, body as unknown as string, (error, value) => {
          const fault =
            error === null ? findFault(body) : { path: '$', message: describeFault(body) }
          if (fault === null) done(null, value)
          else done(toInvalidBody(fault))
        })
      }
    })
  })
  app.addContentTypeParser('*', (request, _payload, done) => {
    receiveBody(request.raw, { bytesMax: 0, budget }, (body) =>
      done(typeof body === 'string' ? unsupportedType : null, undefined),
    )
  })
}

const bodyFaults: Record<BodyFault, Problem> = {
  too_large: new Problem('body_too_large', 'The body is larger than is accepted.'),
  cut: new Problem(
    'request_timeout',
    'Too many bodies are incomplete, and this one is the oldest.',
  ),
  framing: framingFaults.chunks.problem,
}

const unsupportedCoding = new Problem(
  'unsupported_media_type',
  'Send the body as it is, without a Content-Encoding.',
)

const unsupportedType = new Problem(
  'unsupported_media_type',
  'Send Content-Type: application/json.',
)

/** A request without a body needs no parser: clients send a content type all the same. */
export function dropTypeOfNoBody({ headers }: IncomingMessage): void {
  const length = headers['content-length']
  const isEmpty = headers['transfer-encoding'] === undefined && Number(length ?? 0) === 0
  if (isEmpty) delete headers['content-type']
}

const toInvalidBody = (fault: ProblemDetail): Problem =>
  new Problem('invalid_body', 'The request body cannot be read.', { errors: [fault] })

/** What a JSON parser takes without a word: bytes that are no text, and all but the last of equals. */
function findFault(body: Buffer): ProblemDetail | null {
  const message = findTextFault(body)
  if (message !== null) return { path: '$', message }
  const repeated = findDuplicateMember(body.toString('utf8'))
  return repeated === null ? null : { path: repeated, message: 'is given more than once' }
}

function describeFault(body: Buffer): string {
  // A deeper one would exhaust the stack of what finds the byte.
  if (scanBody(body).depth > jsonDepthMax) return 'is not valid JSON'
  if (findJsonErrorOffset(body) !== null) return describeJsonFault(body)
  return 'has a key that is not allowed: __proto__, or constructor with prototype in it'
}
