/**
 * Errors as clients see them: RFC 9457 `application/problem+json`, and the table from stable codes
 * to HTTP statuses. A problem has a public text; its cause goes to the logs only.
 */
import { retryAfterSeconds } from '#shared/core/base/limits/http.ts'

/** What a 401 of ingest says of a submission, from the request alone. */
export type RefusedRequest = {
  /** In place of the problem's, where the form of the signature is wrong. */
  detail?: string
  /** The form of `X-Service-Signature`: `hex; base64 of 32 bytes expected`. */
  signature_form: string
  /** The body as it came. */
  received: { bytes: number; sha256: string }
}

/** What a 503 of the batch address says of the events, in their order. */
export type UnstoredBatch = {
  accepted: number
  invalid: number
  unavailable: number
  events: readonly unknown[]
}

/** What a 409 `alert_changed` says of the alert as it is now. */
export type PresentAlert = { disposition: string; assignee: string | null }

/** What a 409 `case_changed` says of the case as it is now. */
export type PresentCase = {
  version: number
  state: string
  alerts: number
  open_alerts: number
  judged_by: string | null
}

/** Code -> [status, title]. A released code never changes its meaning. */
export const problemCodes = {
  invalid_body: [400, 'The request body is not valid'],
  invalid_policy: [400, 'The policy is not valid'],
  invalid_query: [400, 'The query is not valid'],
  invalid_path: [400, 'The path is not valid'],
  idempotency_key_refused: [400, 'The idempotency key cannot be used'],
  malformed_request: [400, 'The request cannot be read'],
  signature_missing: [401, 'The request is not signed'],
  signature_invalid: [401, 'The signature cannot be verified'],
  unauthorized: [401, 'Authentication is required'],
  totp_required: [401, 'A one-time code is required'],
  forbidden: [403, 'This is not allowed'],
  scope_missing: [403, 'The API key does not have the scope'],
  totp_setup_required: [403, 'A second factor must be set up first'],
  step_up_required: [403, 'The password or a code is required again'],
  step_up_refused: [403, 'The password or the code is wrong'],
  origin_refused: [403, 'The request comes from another origin'],
  insecure_origin: [403, 'Signing in needs https'],
  not_found: [404, 'Not found'],
  device_not_found: [404, 'The device is not known'],
  user_not_found: [404, 'The user is not known'],
  phone_not_found: [404, 'The phone is not known'],
  phone_correction_not_found: [404, 'The correction is not known'],
  alert_not_found: [404, 'The alert is not known'],
  tenant_not_found: [404, 'The tenant is not known'],
  delivery_not_found: [404, 'The delivery is not known'],
  policy_not_found: [404, 'The policy is not known'],
  analyst_not_found: [404, 'The analyst is not known'],
  event_not_found: [404, 'The event is not known'],
  app_not_found: [404, 'The app is not known'],
  label_code_not_found: [404, 'The code of labels is not known'],
  key_not_found: [404, 'The API key is not known'],
  list_entry_not_found: [404, 'The list has no such entry'],
  case_not_found: [404, 'The case is not known'],
  saved_view_not_found: [404, 'The view is not known'],
  erasure_not_found: [404, 'The erasure is not known'],
  bulk_job_not_found: [404, 'The job is not known'],
  draft_not_found: [404, 'The draft is not known'],
  proposal_not_found: [404, 'The proposal is not known'],
  operator_not_found: [404, 'The operator is not known'],
  session_not_found: [404, 'The session is not known'],
  invitation_not_found: [404, 'The invitation is not valid'],
  method_not_allowed: [405, 'The method is not allowed here'],
  request_timeout: [408, 'The request took too long to arrive'],
  conflict: [409, 'The request conflicts with the present state'],
  alert_changed: [409, 'The alert was changed meanwhile'],
  case_changed: [409, 'The case was changed meanwhile'],
  phone_changed: [409, 'The phone was changed meanwhile'],
  tenant_exists: [409, 'The tenant exists already'],
  recovery_pending: [409, 'The tenant must be recovered first'],
  recovery_changed: [409, 'What is to be recovered has changed'],
  older_processes: [409, 'Processes of an older release run'],
  analyst_exists: [409, 'The analyst exists already'],
  key_exists: [409, 'The API key exists already'],
  operator_exists: [409, 'The operator exists already'],
  last_admin: [409, 'One administrator must stay'],
  analysts_not_possible: [409, 'There can be no analysts here'],
  analysts_need_a_server: [409, 'Analysts of one tenant need a ClickHouse server'],
  policy_conflict: [409, 'The policy was changed meanwhile'],
  draft_changed: [409, 'The draft was changed meanwhile'],
  approval_required: [409, 'Another administrator must approve this'],
  proposal_void: [409, 'What the proposal is based on has changed'],
  webhook_not_on: [409, 'The webhook is not on'],
  webhook_has_no_url: [409, 'The webhook has no URL'],
  idempotency_key_in_flight: [409, 'A call with the idempotency key is in progress'],
  body_too_large: [413, 'The request body is too large'],
  uri_too_long: [414, 'The address is too long'],
  unsupported_media_type: [415, 'The media type is not supported'],
  expectation_failed: [417, 'The expectation cannot be met'],
  idempotency_key_reused: [422, 'The idempotency key was used for another request'],
  webhook_url_refused: [422, 'The webhook URL cannot be used'],
  query_failed: [422, 'The query cannot be answered'],
  event_not_explainable: [422, 'The event cannot be explained'],
  rate_limited: [429, 'Too many requests'],
  headers_too_large: [431, 'The request headers are too large'],
  internal_error: [500, 'Something went wrong on our side'],
  unavailable: [503, 'The service cannot do this at the moment'],
} as const satisfies Record<string, readonly [number, string]>

export type ProblemCode = keyof typeof problemCodes

/** One error in a request: a JSON path (`$.signals.root.su_binary`) or parameter, and a message. */
export type ProblemDetail = { path: string; message: string }

export type ProblemBody = {
  type: string
  title: string
  status: number
  detail: string
  code: ProblemCode
  request_id: string
  errors?: ProblemDetail[]
  present?: PresentAlert
  present_case?: PresentCase
} & Partial<RefusedRequest & UnstoredBatch>

/** An error for the client. Throw it anywhere below a route; the HTTP layer renders it. */
export class Problem extends Error {
  readonly code: ProblemCode
  readonly errors: ProblemDetail[] | undefined
  /** Seconds for `Retry-After`, where a retry makes sense. */
  readonly retryAfterSeconds: number | undefined
  readonly present: PresentAlert | undefined
  readonly presentCase: PresentCase | undefined

  constructor(
    code: ProblemCode,
    detail: string,
    more: {
      errors?: ProblemDetail[]
      retryAfterSeconds?: number
      present?: PresentAlert
      presentCase?: PresentCase
      cause?: unknown
    } = {},
  ) {
    super(detail, more.cause === undefined ? undefined : { cause: more.cause })
    this.name = 'Problem'
    this.code = code
    this.errors = more.errors
    this.retryAfterSeconds = more.retryAfterSeconds
    this.present = more.present
    this.presentCase = more.presentCase
  }
}

/** The one answer to every key that is not an active tenant's. */
export const invalidKey = (hint?: string): Problem =>
  new Problem(
    'unauthorized',
    'Send Authorization: Bearer and an API key of an active tenant, which begins with dpk_live_ or ' +
      `dpk_sandbox_. ${hint ?? 'Replaced and removed keys are refused.'}`,
  )

/** @returns a 503 with `Retry-After` */
export function unavailable(detail: string, cause?: unknown): Problem {
  return new Problem('unavailable', detail, {
    retryAfterSeconds,
    ...(cause === undefined ? {} : { cause }),
  })
}

/** The HTTP status of a code. */
export function problemStatus(code: ProblemCode): number {
  return problemCodes[code][0]
}

/**
 * Renders a problem as its RFC 9457 body.
 * @param requestId the value of the answer's `X-Request-Id`
 * @param refused what a 401 of ingest says of the request, or a 503 of the events of a batch
 */
export function toProblemBody(
  problem: Problem,
  requestId: string,
  refused?: RefusedRequest | UnstoredBatch,
): ProblemBody {
  const [status, title] = problemCodes[problem.code]
  return {
    type: `urn:device-intelligence:problem:${problem.code}`,
    title,
    status,
    detail: problem.message,
    code: problem.code,
    request_id: requestId,
    ...(problem.errors === undefined ? {} : { errors: problem.errors }),
    ...(problem.present === undefined ? {} : { present: problem.present }),
    ...(problem.presentCase === undefined ? {} : { present_case: problem.presentCase }),
    ...refused,
  }
}
