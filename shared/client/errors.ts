/** The errors of the client package. Each has a class and stable fields; none contains a secret. */

/** One error of a body that was refused: a JSON path and the reason. */
export type BodyError = { path: string; message: string }

/** What the service says of a request that it refused (RFC 9457). */
export type Refusal = {
  /** The HTTP status. */
  status: number
  /** The stable code, such as `invalid_body`; null where the answer is not of the service. */
  code: string | null
  detail: string
  /** The request's id, to quote to the operator of the service; null where there is none. */
  requestId: string | null
  /** The errors of a body that is not valid; empty otherwise. */
  errors: BodyError[]
}

/** The service refused the telemetry. The same bytes would be refused again. */
export class TelemetryRefusedError extends Error {
  override readonly name = 'TelemetryRefusedError'
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    const { status, code, detail, requestId, errors } = refusal
    const paths = errors.slice(0, 3).map(({ path, message }) => `${path} ${message}`)
    const more = paths.length === 0 ? '' : ` (${paths.join('; ')})`
    const id = requestId === null ? '' : `, request ${requestId}`
    super(`the telemetry was refused with ${status} ${code ?? ''}: ${detail}${more}${id}`)
    this.refusal = refusal
  }
}

/** What ended the last attempt. */
export type LastAttempt = {
  /** The HTTP status; null where no answer came. */
  status: number | null
  /** What the service asked to wait before the next attempt, in ms; null where it did not. */
  retryAfterMs: number | null
}

/**
 * The service could not be reached, or could not take the telemetry, within the bounds of the call.
 * Sending the same bytes later is safe: they count once.
 */
export class TelemetryUnavailableError extends Error {
  override readonly name = 'TelemetryUnavailableError'
  readonly attempts: number
  readonly status: number | null
  readonly retryAfterMs: number | null

  constructor(attempts: number, { status, retryAfterMs }: LastAttempt, cause?: unknown) {
    const last = status === null ? 'no answer' : `status ${status}`
    super(`the telemetry was not accepted in ${attempts} attempts: ${last}`, { cause })
    this.attempts = attempts
    this.status = status
    this.retryAfterMs = retryAfterMs
  }
}

/** Why a webhook delivery is not genuine. */
export const webhookFaults = {
  unsigned: 'it carries no signature',
  unstamped: 'it carries no Standard Webhooks signature, and one is required',
  forged: 'its signature is not of these bytes and this secret',
  stale: 'its signed time is too far from now',
  unreadable: 'its body is not a JSON object',
} as const

export type WebhookFault = keyof typeof webhookFaults

/** A delivery that must not be acted on. Answer it with 401. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError'
  readonly fault: WebhookFault

  constructor(fault: WebhookFault) {
    super(`the webhook delivery is not genuine: ${webhookFaults[fault]}`)
    this.fault = fault
  }
}
