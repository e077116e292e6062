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
  /** Of a 401: the form of the signature that arrived; null otherwise. */
  signatureForm: string | null
  /** Of a 401: the body that arrived. Other bytes than you sent were changed on their way. */
  received: { bytes: number; sha256: string } | null
}

/** What a call asked for, as its errors name it. */
export type CallSubject = 'the telemetry' | 'the challenge' | 'the registration'

/**
 * The service refused the telemetry, or the registration of an install. The same bytes would be
 * refused again.
 */
export class TelemetryRefusedError extends Error {
  override readonly name = 'TelemetryRefusedError'
  readonly refusal: Refusal

  constructor(refusal: Refusal, subject: CallSubject = 'the telemetry') {
    super(`${subject} was refused with ${describeRefusal(refusal)}`)
    this.refusal = refusal
  }
}

/** What ended the last attempt. */
export type LastAttempt = {
  /** The HTTP status; null where no answer came. */
  status: number | null
  /** What the service asked to wait before the next attempt, in ms; null where it did not. */
  retryAfterMs: number | null
  /** What the answer said; null where no answer came. */
  refusal: Refusal | null
}

/**
 * The service could not be reached, or could not take the telemetry, within the bounds of the call.
 * Sending the same bytes later is safe: they count once. `cause` is the fault of the network, where
 * no answer came.
 */
export class TelemetryUnavailableError extends Error {
  override readonly name = 'TelemetryUnavailableError'
  readonly attempts: number
  readonly status: number | null
  readonly retryAfterMs: number | null
  readonly refusal: Refusal | null

  constructor(
    attempts: number,
    last: LastAttempt,
    cause?: unknown,
    subject: CallSubject = 'the telemetry',
  ) {
    const { status, retryAfterMs, refusal } = last
    const reason = refusal === null ? `no answer${describeCause(cause)}` : describeRefusal(refusal)
    super(`${subject} was not accepted in ${attempts} attempts: ${reason}`, { cause })
    this.attempts = attempts
    this.status = status
    this.retryAfterMs = retryAfterMs
    this.refusal = refusal
  }
}

function describeRefusal(refusal: Refusal): string {
  const { status, code, detail, requestId, errors, signatureForm, received } = refusal
  const paths = errors.slice(0, 3).map(({ path, message }) => `${path} ${message}`)
  return [
    `${status}${code === null ? '' : ` ${code}`}: ${detail}`,
    paths.length === 0 ? '' : ` (${paths.join('; ')})`,
    signatureForm === null ? '' : `; the signature that arrived is ${signatureForm}`,
    received === null ? '' : `; the body that arrived has ${received.bytes} bytes`,
    requestId === null ? '' : `, request ${requestId}`,
  ].join('')
}

/** Causes that are followed; `fetch` has one or two. */
const causesMax = 5

/** The innermost cause, which says most: `fetch failed` says nothing. */
function describeCause(cause: unknown): string {
  let innermost = cause
  for (let depth = 0; depth < causesMax; depth++) {
    const next = (innermost as { cause?: unknown } | null | undefined)?.cause
    if (next === undefined || next === null) break
    innermost = next
  }
  const { message, code } = (innermost ?? {}) as { message?: unknown; code?: unknown }
  const texts = [message, code].filter((text) => typeof text === 'string' && text !== '')
  if (texts.length === 0) return ''
  const [text, more] = texts as string[]
  return ` (${more === undefined || text!.includes(more) ? text : `${text}, ${more}`})`
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

  /** @param hint a likely cause at the receiver */
  constructor(fault: WebhookFault, hint?: string) {
    const more = hint === undefined ? '' : ` (${hint})`
    super(`the webhook delivery is not genuine: ${webhookFaults[fault]}${more}`)
    this.fault = fault
  }
}

/** Why a verdict token must not be believed. */
export const verdictFaults = {
  malformed: 'it is not a verdict token of the service',
  algorithm: 'it is not signed with ES256',
  unknown_key: 'its key is not one of the service',
  forged: 'its signature is not of this token and the key that it names',
  expired: 'it has expired',
  future: 'it was issued in the future: compare the clocks',
  issuer: 'it is of another issuer',
  tenant: 'it is of another tenant',
  audience: 'it was asked for with another audience',
  nonce: 'it answers another nonce',
} as const

export type VerdictFault = keyof typeof verdictFaults

/** A verdict that must not be believed. Treat it as if the app had sent none. */
export class VerdictVerificationError extends Error {
  override readonly name = 'VerdictVerificationError'
  readonly fault: VerdictFault

  constructor(fault: VerdictFault) {
    super(`the verdict must not be believed: ${verdictFaults[fault]}`)
    this.fault = fault
  }
}

/** The keys of the service could not be fetched, so nothing is known of the verdict. */
export class VerdictKeysError extends Error {
  override readonly name = 'VerdictKeysError'

  constructor(cause: unknown) {
    super(`the verdict keys cannot be fetched${describeCause(cause)}`, { cause })
  }
}
