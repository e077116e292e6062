/**
 * The error responses of an OpenAPI document: one response per status with an RFC 9457 body, its
 * headers, and an example for each problem code.
 */
import { STATUS_CODES } from 'node:http'
import {
  Problem,
  type ProblemCode,
  type ProblemDetail,
  problemCodes,
  problemStatus,
  type RefusedRequest,
  toProblemBody,
} from '#shared/core/http/problem.ts'
import { describeRefusedRequest } from '#shared/core/telemetry/signature-form.ts'

/** A part of an OpenAPI document. */
export type Json = Record<string, unknown>

/** A reference to a named schema of the document. */
export const toSchemaRef = (id: string): Json => ({ $ref: `#/components/schemas/${id}` })
/** A reference to a named header of the document. */
export const toHeaderRef = (id: string): Json => ({ $ref: `#/components/headers/${id}` })

/** A reference to the example of a problem. */
const toExampleRef = (code: ProblemCode): Json => ({ $ref: `#/components/examples/${code}` })

/** A header that each response has. */
export const requestIdHeader = { 'X-Request-Id': toHeaderRef('RequestId') }
const retryAfterHeader = { 'Retry-After': toHeaderRef('RetryAfter') }

/** The named headers that responses refer to. */
export const problemHeaders: Json = {
  RequestId: {
    description: 'Identifies this request in the logs of the service.',
    required: true,
    schema: { type: 'string', examples: ['req_c29tZS1yZXF1ZXN0'] },
  },
  RetryAfter: {
    description: 'Seconds to wait before the next attempt.',
    required: true,
    schema: { type: 'integer', minimum: 1, examples: [1] },
  },
  Authenticate: {
    description: 'The authentication scheme.',
    required: true,
    schema: { type: 'string', examples: ['Bearer'] },
  },
}

/** Problems that every route can return, before its handler runs. */
export const serverProblems: readonly ProblemCode[] = [
  'malformed_request',
  'request_timeout',
  'headers_too_large',
  'internal_error',
]

/**
 * Documents problems by status.
 * @param codes the problems that an operation can return; repeated codes count once
 * @param headersOf further headers of a status
 * @returns responses by status
 */
export function toProblemResponses(
  codes: readonly ProblemCode[],
  headersOf: (status: number) => Json = () => ({}),
): Record<string, Json> {
  const responses: Record<string, Json> = {}
  for (const [status, ofStatus] of groupByStatus(codes)) {
    responses[status] = {
      description: `${STATUS_CODES[status]}: ${ofStatus.join(', ')}`,
      headers: {
        ...requestIdHeader,
        ...(ofStatus.includes('unauthorized')
          ? { 'WWW-Authenticate': toHeaderRef('Authenticate') }
          : {}),
        ...(status === 429 || status === 503 ? retryAfterHeader : {}),
        ...headersOf(status),
      },
      content: {
        'application/problem+json': {
          schema: toSchemaRef('Problem'),
          examples: Object.fromEntries(ofStatus.map((code) => [code, toExampleRef(code)])),
        },
      },
    }
  }
  return responses
}

function groupByStatus(codes: readonly ProblemCode[]): Map<number, ProblemCode[]> {
  const groups = new Map<number, ProblemCode[]>()
  for (const code of new Set(codes)) {
    const status = problemStatus(code)
    groups.set(status, [...(groups.get(status) ?? []), code])
  }
  return groups
}

/** Examples of the faults that a problem lists. */
const exampleFaults: Partial<Record<ProblemCode, ProblemDetail>> = {
  invalid_query: { path: 'limit', message: 'must be a whole number from 1' },
  invalid_path: { path: 'device_id', message: 'must not contain control characters' },
  invalid_body: { path: '$.signals.root', message: 'must be an object' },
  invalid_policy: { path: '$.thresholds.block', message: 'must be above review' },
}

/** What the example of a 401 of ingest says of the request: `{}`, signed with another form. */
const exampleBody = Buffer.from('{}')
const exampleRequests: Partial<Record<ProblemCode, RefusedRequest>> = {
  signature_missing: describeRefusedRequest(exampleBody, undefined),
  signature_invalid: describeRefusedRequest(exampleBody, 'f0'.repeat(32)),
}

const changedAlert = { disposition: 'CONFIRMED', assignee: 'ada@example.com' }
const changedCase = { version: 7, state: 'OPEN', alerts: 5, open_alerts: 2, judged_by: null }

/** The examples that responses refer to, by code. */
export const toProblemExamples = (): Record<string, Json> =>
  Object.fromEntries(
    (Object.keys(problemCodes) as ProblemCode[]).map((code) => [code, { value: toExample(code) }]),
  )

function toExample(code: ProblemCode): object {
  const [, title] = problemCodes[code]
  const fault = exampleFaults[code]
  const problem = new Problem(code, `${title}.`, {
    ...(fault === undefined ? {} : { errors: [fault] }),
    ...(code === 'alert_changed' ? { present: changedAlert } : {}),
    ...(code === 'case_changed' ? { presentCase: changedCase } : {}),
  })
  return toProblemBody(problem, 'req_c29tZS1yZXF1ZXN0', exampleRequests[code])
}
