/**
 * The identity provider of operators, over OpenID Connect: the authorization code flow with PKCE.
 * Nothing waits for it at start: its metadata is read whenever someone begins to sign in, so that
 * an outage is known before a browser is sent there.
 */
import * as oidc from 'openid-client'
import {
  type OidcChecks,
  oidcAttemptMs,
  oidcClockSkewMs,
} from '#shared/core/operators/oidc-attempt.ts'
import { describeConnectFault } from '#shared/io/process/connect-faults.ts'

export type OidcSettings = { issuer: string; clientId: string; clientSecret?: string | undefined }

/** Who signed in at the provider, as its signed answer says. */
export type OidcIdentity = {
  issuer: string
  /** The provider's name for the person, which never changes. */
  subject: string
  email: string | null
  emailVerified: boolean
  /** When the person last proved who they are; null when it does not say. */
  authenticatedAtMs: number | null
}

export type OidcClient = {
  /** As the settings name it. */
  issuer: string
  /**
   * The address at the provider to send a browser to.
   * @param options.fresh asks the person to prove again who they are
   * @throws OidcUnavailableError
   */
  toSignInUrl: (
    checks: OidcChecks,
    options: { redirectUri: string; fresh: boolean },
  ) => Promise<string>
  /**
   * Redeems what the provider sent the browser back with.
   * @param returned the address of the return, with its query
   * @throws OidcUnavailableError, OidcRefusedError
   */
  redeem: (returned: URL, checks: OidcChecks, options: { fresh: boolean }) => Promise<OidcIdentity>
}

/** The provider cannot be used now; the message is the end of a sentence about it. */
export class OidcUnavailableError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'OidcUnavailableError'
  }
}

/** The provider, or what it was asked, says no; the message is for the person. */
export class OidcRefusedError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'OidcRefusedError'
  }
}

const timeoutSeconds = 5

/** @param settings.issuer https, or http on this machine */
export function createOidcClient(settings: OidcSettings): OidcClient {
  let found: oidc.Configuration | null = null
  let finding: Promise<oidc.Configuration> | null = null
  const find = async (): Promise<oidc.Configuration> => {
    // Sign-ins that begin while it is read wait for the same answer: one request at a time.
    finding ??= discover(settings).finally(() => {
      finding = null
    })
    found = await finding.catch(rejectUnavailable)
    return found
  }
  return {
    issuer: settings.issuer,
    toSignInUrl: async ({ state, nonce, verifier }, { redirectUri, fresh }) => {
      const config = await find()
      const url = oidc.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: 'openid email',
        state,
        nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...(fresh ? { prompt: 'login', max_age: '0' } : {}),
      })
      return url.href
    },
    redeem: async (returned, checks, { fresh }) => {
      const config = found ?? (await find())
      try {
        const tokens = await oidc.authorizationCodeGrant(config, returned, {
          expectedState: checks.state,
          expectedNonce: checks.nonce,
          pkceCodeVerifier: checks.verifier,
          idTokenExpected: true,
          // That it is there; how old it may be depends on when the attempt began.
          ...(fresh ? { maxAge: oidcAttemptMs / 1_000 } : {}),
        })
        const claims = tokens.claims()!
        const more =
          claims.email === undefined ? await readUserInfo(config, tokens, claims.sub) : {}
        return toIdentity({ ...more, ...claims })
      } catch (error) {
        throw toFault(error)
      }
    },
  }
}

async function discover({ issuer, clientId, clientSecret }: OidcSettings) {
  const server = new URL(issuer)
  const execute = [
    oidc.enableNonRepudiationChecks,
    // Settings take such an issuer on this machine alone.
    ...(server.protocol === 'http:' ? [oidc.allowInsecureRequests] : []),
  ]
  const metadata = { [oidc.clockTolerance]: oidcClockSkewMs / 1_000 }
  const config = await oidc.discovery(server, clientId, metadata, oidc.None(), {
    execute,
    timeout: timeoutSeconds,
  })
  if (clientSecret === undefined) return config
  const methods = config.serverMetadata().token_endpoint_auth_methods_supported
  // Without the field a provider takes the secret in the header.
  const takesHeader = methods?.includes('client_secret_basic') ?? true
  const authentication = takesHeader
    ? oidc.ClientSecretBasic(clientSecret)
    : oidc.ClientSecretPost(clientSecret)
  const own = new oidc.Configuration(config.serverMetadata(), clientId, metadata, authentication)
  own.timeout = timeoutSeconds
  for (const apply of execute) apply(own)
  return own
}

/** What the provider says of a person whose email is not in the signed answer. */
const readUserInfo = (
  config: oidc.Configuration,
  tokens: { access_token: string },
  subject: string,
): Promise<Record<string, unknown>> => oidc.fetchUserInfo(config, tokens.access_token, subject)

function toIdentity(claims: Record<string, unknown>): OidcIdentity {
  const { iss, sub, email, email_verified: verified, auth_time: authTime } = claims
  return {
    issuer: String(iss),
    subject: String(sub),
    email: typeof email === 'string' ? email : null,
    // A text such as "false" is no proof.
    emailVerified: verified === true,
    authenticatedAtMs: typeof authTime === 'number' ? authTime * 1_000 : null,
  }
}

const rejectUnavailable = (error: unknown): never => {
  throw new OidcUnavailableError(describeFault(error), { cause: error })
}

/** Errors of the console's own registration at the provider. */
const registrationErrors = ['invalid_client', 'unauthorized_client']

function toFault(error: unknown): Error {
  if (error instanceof oidc.AuthorizationResponseError) {
    const code = /^[a-z_]{1,40}$/.test(error.error) ? error.error : 'an error'
    return new OidcRefusedError(`The identity provider answered ${code}.`, { cause: error })
  }
  if (isRegistrationFault(error)) {
    const why = 'does not take the client id and secret of this console'
    return new OidcUnavailableError(why, { cause: error })
  }
  if (isOutage(error)) return new OidcUnavailableError(describeFault(error), { cause: error })
  const text = 'The answer of the identity provider is not valid here, or was used already.'
  return new OidcRefusedError(text, { cause: error })
}

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
  if (codeOf(error) === 'OAUTH_TIMEOUT') return `does not answer within ${timeoutSeconds} s`
  const status = findStatus(error)
  if (status !== null) return `answers with HTTP ${status}`
  if (error instanceof TypeError) return describeConnectFault(error)
  return 'has metadata that this console cannot use: check OIDC_ISSUER'
}
