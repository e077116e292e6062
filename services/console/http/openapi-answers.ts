/**
 * Completes the admin API's OpenAPI document: what the routes themselves say of an answer that is
 * not a success is its shape; here each operation gets the statuses it can really have, with their
 * codes, their media type and their headers. A drill holds every answer to this.
 */
import { STATUS_CODES } from 'node:http'
import { type ProblemCode, problemStatus } from '#shared/core/http/problem.ts'
import { type EndpointAccess, findAccess } from '#shared/core/operators/roles.ts'

type Json = Record<string, unknown>

/** Answers of every call, most of them made before a route sees it. */
const everywhere: ProblemCode[] = [
  ...(['malformed_request', 'rate_limited', 'request_timeout'] as const),
  ...(['headers_too_large', 'internal_error', 'unavailable'] as const),
]

/** What goes with a body, whether the operation wants one or not. */
const ofBodies: ProblemCode[] = ['invalid_body', 'body_too_large', 'unsupported_media_type']

/** What an operation can say beside: by its method and its path under `/admin/v1`. */
const own: Record<string, ProblemCode[]> = {
  'POST /tenants': ['tenant_exists', 'conflict', 'webhook_url_refused'],
  'PUT /tenants/{tenant_id}/rates': ['conflict'],
  'POST /tenants/{tenant_id}/suspend': ['conflict'],
  'POST /tenants/{tenant_id}/resume': ['conflict'],
  'POST /tenants/{tenant_id}/rotate': ['conflict'],
  'PUT /tenants/{tenant_id}/webhook': ['conflict', 'webhook_url_refused'],
  'DELETE /tenants/{tenant_id}/webhook': ['conflict'],
  'PUT /tenants/{tenant_id}/retention': ['conflict'],
  'POST /alerts/{alert_id}/disposition': ['alert_not_found'],
  'GET /tenants/{tenant_id}/deliveries/{delivery_id}': ['delivery_not_found'],
  'POST /tenants/{tenant_id}/deliveries/replay': ['alert_not_found', 'webhook_not_on'],
  'POST /tenants/{tenant_id}/deliveries/test': ['webhook_not_on'],
  'POST /tenants/{tenant_id}/webhook/pause': ['webhook_not_on'],
  'POST /tenants/{tenant_id}/webhook/resume': ['webhook_has_no_url'],
  'PUT /tenants/{tenant_id}/policy': ['invalid_policy', 'policy_conflict', 'conflict'],
  'GET /tenants/{tenant_id}/policy/versions/{version}': ['policy_not_found'],
  'GET /policy-presets/{name}': ['policy_not_found'],
  'POST /tenants/{tenant_id}/policy/backtest': ['invalid_policy', 'conflict'],
  'PUT /tenants/{tenant_id}/policy/shadow': ['invalid_policy', 'conflict'],
  'GET /tenants/{tenant_id}/policy/shadow': ['policy_not_found'],
  'DELETE /tenants/{tenant_id}/policy/shadow': ['policy_not_found', 'conflict'],
  'GET /tenants/{tenant_id}/policy/shadow/comparison': ['policy_not_found'],
  'POST /session': ['unauthorized', 'totp_required', 'insecure_origin'],
  'POST /session/step-up': ['step_up_refused'],
  'PUT /session/password': ['step_up_refused'],
  'POST /session/totp': ['conflict'],
  'POST /session/totp/confirm': ['conflict', 'step_up_refused'],
  'GET /sessions': ['forbidden'],
  'DELETE /sessions/{session_id}': ['session_not_found'],
  'GET /invitations/{token}': ['invitation_not_found'],
  'POST /invitations/{token}': ['invitation_not_found', 'operator_exists', 'insecure_origin'],
  'POST /operators/invitations': ['operator_exists', 'tenant_not_found'],
  'PATCH /operators/{operator_id}': ['operator_not_found', 'tenant_not_found', 'last_admin'],
  'GET /events/{event_id}/explanation': ['event_not_found', 'event_not_explainable'],
  'POST /tenants/{tenant_id}/erasures': ['conflict'],
  'POST /tenants/{tenant_id}/analysts': ['analyst_exists', 'analysts_not_possible'],
  'DELETE /tenants/{tenant_id}/analysts/{name}': ['analyst_not_found'],
}

/** Successes that are not plain JSON, by their media type. */
const mediaTypes: Record<string, string> = {
  'GET /policy.schema.json': 'application/schema+json',
  'POST /tenants/{tenant_id}/policy/backtest': 'application/x-ndjson',
}

const header = (description: string, schema: Json, required = true): Json => ({
  description,
  required,
  schema,
})
const text = { type: 'string' }
const requestId = header('Names this request in our logs.', text)
const retryAfter = {
  'Retry-After': header('Seconds after which to try again.', { type: 'integer', minimum: 1 }),
}
const headersOf: Record<number, Json> = {
  401: { 'WWW-Authenticate': header('The scheme to authenticate with.', text) },
  429: retryAfter,
  503: retryAfter,
}

type Operation = {
  security?: Record<string, string[]>[]
  parameters?: { in: string }[]
  responses: Record<
    string,
    { description?: string; headers?: Json; content?: Record<string, Json> }
  >
}

/**
 * Replaces every operation's `default` answer, in place.
 * @param document as @fastify/swagger made it of the routes
 * @param prefix what the paths begin with
 * @returns the document
 */
export function describeAnswers<Document extends object>(
  document: Document,
  prefix: string,
): Document {
  const { paths = {} } = document as { paths?: Record<string, Record<string, Operation>> }
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const name = `${method.toUpperCase()} ${path.slice(prefix.length)}`
      describeOperation(name, operation)
    }
  }
  return document
}

function describeOperation(name: string, operation: Operation): void {
  const { parameters = [], responses } = operation
  const access = accessOf(name)
  if (access.who === 'public') operation.security = []
  if (access.who === 'session') operation.security = [{ session: [] }]
  const problem = responses.default?.content?.['application/json']?.schema as Json | undefined
  delete responses.default
  for (const answer of Object.values(responses)) {
    answer.headers = { 'X-Request-Id': requestId }
    const mediaType = mediaTypes[name]
    if (mediaType === undefined) continue
    answer.content = { [mediaType]: answer.content?.['application/json'] ?? {} }
  }
  const codes = toCodes(name, new Set(parameters.map((one) => one.in)))
  for (const status of new Set(codes.map(problemStatus))) {
    const ofStatus = codes.filter((code) => problemStatus(code) === status)
    responses[status] = {
      description: `${STATUS_CODES[status]}: ${[...new Set(ofStatus)].join(', ')}`,
      headers: { 'X-Request-Id': requestId, ...headersOf[status] },
      content: { 'application/problem+json': { schema: problem ?? {} } },
    }
  }
}

/** The entry of the table of roles, in which parameters are written `:name`. */
function accessOf(name: string): EndpointAccess {
  const [method = '', path = ''] = name.split(' ')
  const access = findAccess(method, path.replaceAll(/\{(\w+)\}/g, ':$1'))
  if (access === undefined) throw new Error(`the table of roles has no entry for ${name}`)
  return access
}

/** What the check before the routes can refuse. */
function toAccessCodes(name: string): ProblemCode[] {
  const access = accessOf(name)
  const codes: ProblemCode[] = name.startsWith('GET ') ? [] : ['origin_refused']
  if (access.who === 'public') return codes
  codes.push('unauthorized')
  if (access.stepUp === true) codes.push('step_up_required')
  if (access.who !== 'session') codes.push('forbidden')
  return codes
}

function toCodes(name: string, places: Set<string>): ProblemCode[] {
  const codes: ProblemCode[] = [...everywhere, ...toAccessCodes(name), ...(own[name] ?? [])]
  if (places.has('path')) codes.push('invalid_path', 'uri_too_long')
  if (places.has('query')) codes.push('invalid_query')
  // The audit log of a tenant outlives it.
  if (name.includes('{tenant_id}') && !name.endsWith('/audit')) codes.push('tenant_not_found')
  return name.startsWith('GET ') ? codes : [...codes, ...ofBodies]
}
