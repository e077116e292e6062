/**
 * The parts that every operation of the OpenAPI document is made of: answers with their headers,
 * failures with an example for each code, parameters.
 */
import { STATUS_CODES } from 'node:http'
import {
  Problem,
  type ProblemCode,
  problemStatus,
  toProblemBody,
} from '#shared/core/http/problem.ts'

export type Json = Record<string, unknown>

export const schemaRef = (id: string): Json => ({ $ref: `#/components/schemas/${id}` })
const headerRef = (id: string): Json => ({ $ref: `#/components/headers/${id}` })

export function componentHeaders(): Json {
  const text = (description: string, example: string): Json => ({
    description,
    schema: { type: 'string', examples: [example] },
  })
  return {
    RequestId: {
      ...text('Names this request in our logs.', 'req_c29tZS1yZXF1ZXN0'),
      required: true,
    },
    RateLimit: text('Calls left, and seconds until all are there again.', '"tenant";r=1999;t=1'),
    RateLimitPolicy: text('The burst, and the seconds it refills in.', '"tenant";q=2000;w=2'),
    RetryAfter: {
      description: 'Seconds after which to try again.',
      required: true,
      schema: { type: 'integer', minimum: 1, examples: [1] },
    },
    Authenticate: { ...text('The scheme to authenticate with.', 'Bearer'), required: true },
  }
}

export const requestId = { 'X-Request-Id': headerRef('RequestId') }
export const rateLimit = {
  RateLimit: headerRef('RateLimit'),
  'RateLimit-Policy': headerRef('RateLimitPolicy'),
}

export const retryAfter = { 'Retry-After': headerRef('RetryAfter') }

export function answer(description: string, schema: string, example: unknown, headers: Json): Json {
  return {
    description,
    headers: { ...requestId, ...headers },
    content: { 'application/json': { schema: schemaRef(schema), example } },
  }
}

/** How an operation fails: each code with the words an example has. */
export type Failures = Partial<
  Record<ProblemCode, { detail: string; path?: string; message?: string }>
>

/** Answers of every call, made by the HTTP shell before a route sees it. */
const shellFailures: Failures = {
  request_timeout: { detail: 'The request cannot be read.' },
  headers_too_large: { detail: 'The request cannot be read.' },
  internal_error: { detail: 'The request could not be processed.' },
}

/** Failures by status; codes of one status are told apart by their examples. */
export function failures(of: Failures, headersOf: Record<number, Json> = {}): Json {
  const responses: Record<string, Json> = {}
  const examples: Record<string, Json> = {}
  for (const [name, words] of Object.entries({ ...of, ...shellFailures })) {
    const code = name as ProblemCode
    const status = problemStatus(code)
    examples[status] ??= {}
    examples[status][code] = { value: toProblemExample(code, words) }
    responses[status] = {
      description: STATUS_CODES[status],
      headers: { ...requestId, ...(status === 503 ? retryAfter : {}), ...headersOf[status] },
      content: {
        'application/problem+json': { schema: schemaRef('Problem'), examples: examples[status] },
      },
    }
  }
  return responses
}

export const restHeaders: Record<number, Json> = {
  400: rateLimit,
  401: { 'WWW-Authenticate': headerRef('Authenticate') },
  404: rateLimit,
  429: { ...retryAfter, ...rateLimit },
}

function toProblemExample(code: ProblemCode, words: NonNullable<Failures[ProblemCode]>): object {
  const { detail, path, message } = words
  const errors = path === undefined ? {} : { errors: [{ path, message: message ?? '' }] }
  return toProblemBody(new Problem(code, detail, errors), 'req_c29tZS1yZXF1ZXN0')
}

export const restFailures: Failures = {
  malformed_request: { detail: 'The request cannot be read.' },
  unauthorized: { detail: 'This call needs a valid API key as a bearer token.' },
  rate_limited: { detail: 'The tenant is over its rate of calls.' },
  unavailable: { detail: 'The database cannot answer at the moment.' },
}

export function parameter(name: string, schema: Json, description: string, place = 'query'): Json {
  const path = place === 'path' ? { required: true } : {}
  return { name, in: place, description, ...path, schema }
}
