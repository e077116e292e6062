/**
 * Why the identity provider cannot be used, or why its answer is refused: each cause has words for
 * the person and a code of its own for the log.
 */
import * as oidc from 'openid-client'
import { describeConnectFault } from '#shared/io/process/connect-faults.ts'

/** How long the provider may take to answer. */
export const oidcTimeoutSeconds = 5

/** The provider cannot be used now; the message is the end of a sentence about it. */
export class OidcUnavailableError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'OidcUnavailableError'
  }
}

/** The provider, or what it was asked, says no; the message is for the person. */
export class OidcRefusedError extends Error {
  /** The cause, for the log. */
  readonly reason: string

  constructor(reason: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'OidcRefusedError'
    this.reason = reason
  }
}

export const rejectUnavailable = (error: unknown): never => {
  throw new OidcUnavailableError(describeFault(error), { cause: error })
}

/** Errors of the console's own registration at the provider. */
const registrationErrors = ['invalid_client', 'unauthorized_client']

/** By the code of the library: the cause, and what the person is told. */
const refusals: Record<string, [reason: string, words: string]> = {
  OAUTH_JWT_TIMESTAMP_CHECK_FAILED: [
    'clock',
    'The answer of the identity provider is too old or from the future: its clock and that of ' +
      'this console differ.',
  ],
  OAUTH_JWT_CLAIM_COMPARISON_FAILED: [
    'claim_mismatch',
    'The answer of the identity provider is for another sign-in, application or issuer.',
  ],
  OAUTH_KEY_SELECTION_FAILED: [
    'unknown_key',
    'The answer of the identity provider is signed with a key that it does not publish.',
  ],
  OAUTH_RESPONSE_IS_NOT_JSON: [
    'not_json',
    'Something else than the identity provider answered: what came is no JSON.',
  ],
}

/** What went wrong when an answer of the provider was redeemed. */
export function toOidcFault(error: unknown): Error {
  if (error instanceof OidcRefusedError) return error
  const refuse = (reason: string, words: string) =>
    new OidcRefusedError(reason, words, { cause: error })
  if (error instanceof oidc.AuthorizationResponseError) {
    const code = toCode(error.error)
    return refuse(`provider_${code}`, `The identity provider answered ${code}.`)
  }
  if (isRegistrationFault(error)) {
    const why = 'does not take the client id and secret of this console'
    return new OidcUnavailableError(why, { cause: error })
  }
  if (isOutage(error)) return new OidcUnavailableError(describeFault(error), { cause: error })
  if (error instanceof oidc.ResponseBodyError) {
    if (error.error === 'invalid_grant') {
      const words =
        'The identity provider does not take its code: it was used already or is too old.'
      return refuse('code_refused', words)
    }
    const code = toCode(error.error)
    return refuse(`exchange_${code}`, `The identity provider refused its own code: ${code}.`)
  }
  const code = String(codeOf(error))
  const known = refusals[code]
  if (known !== undefined) return refuse(...known)
  const words = 'The identity provider gave an answer that this console cannot use'
  return refuse('answer_invalid', `${words} (${toCode(code.toLowerCase())}).`)
}

/** A provider chooses the text: only a code is repeated. */
const toCode = (text: string): string => (/^[a-z_]{1,40}$/.test(text) ? text : 'an error')

const isRegistrationFault = (error: unknown): boolean =>
  error instanceof oidc.WWWAuthenticateChallengeError ||
  (error instanceof oidc.ResponseBodyError && registrationErrors.includes(error.error))

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null)?.code

function isOutage(error: unknown): boolean {
  if (codeOf(error) === 'OAUTH_TIMEOUT') return true
  if (error instanceof TypeError && error.message === 'fetch failed') return true
  return (findStatus(error) ?? 0) >= 500
}

/** The status of an answer that the library did not take. */
function findStatus(error: unknown): number | null {
  const { cause } = (error ?? {}) as { cause?: unknown }
  return cause instanceof Response ? cause.status : null
}

function describeFault(error: unknown): string {
  if (codeOf(error) === 'OAUTH_TIMEOUT') return `does not answer within ${oidcTimeoutSeconds} s`
  const status = findStatus(error)
  if (status !== null) return `answers with HTTP ${status}`
  if (error instanceof TypeError) return describeConnectFault(error)
  return 'has metadata that this console cannot use: check OIDC_ISSUER'
}
