/**
 * The identity provider of operators, over OpenID Connect: the authorization code flow with PKCE.
 * Nothing waits for it at start: its metadata is read when someone begins to sign in, at most once
 * in ten seconds, so that an outage is known before a browser is sent there.
 */
import * as oidc from 'openid-client'
import { createKept } from '#shared/core/base/kept-value.ts'
import { oidcMetadataKeptMs } from '#shared/core/base/limits/http.ts'
import { type OidcChecks, oidcClockSkewMs } from '#shared/core/operators/oidc-attempt.ts'
import {
  OidcRefusedError,
  oidcTimeoutSeconds,
  rejectUnavailable,
  toOidcFault,
} from './oidc-faults.ts'

export type OidcSettings = {
  issuer: string
  clientId: string
  clientSecret?: string | undefined
  /** An email of this provider counts as verified unless it says that it is not. */
  trustsEmails?: boolean
  /** False for a provider that does not say when a person proved who they are. */
  stepsUp?: boolean
  /** A clock that never goes back; that of the process unless given. */
  monotonicMs?: () => number
}

/** Who signed in at the provider, as its signed answer says. */
export type OidcIdentity = {
  issuer: string
  /** The provider's name for the person, which never changes. */
  subject: string
  email: string | null
  /** Null when it does not say. */
  emailVerified: boolean | null
  /** When the person last proved who they are; null when it does not say. */
  authenticatedAtMs: number | null
}

export type OidcClient = {
  /** As the settings name it. */
  issuer: string
  /** Whether a step-up goes through the provider. */
  stepsUp: boolean
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
  redeem: (returned: URL, checks: OidcChecks) => Promise<OidcIdentity>
}

/** @param settings.issuer https, or http on this machine */
export function createOidcClient(settings: OidcSettings): OidcClient {
  // Sign-ins that begin while it is read wait for the same answer, and share it for some seconds,
  // also an outage. Older metadata is no reason to send a browser there.
  const metadata = createKept({
    read: () => discover(settings).catch(rejectUnavailable),
    nowMs: settings.monotonicMs ?? (() => performance.now()),
    rules: {
      freshMs: oidcMetadataKeptMs,
      staleMsMax: oidcMetadataKeptMs,
      retryMs: oidcMetadataKeptMs,
      waitMs: 0,
    },
  })
  return {
    issuer: settings.issuer,
    stepsUp: settings.stepsUp ?? true,
    toSignInUrl: async ({ state, nonce, verifier }, { redirectUri, fresh }) => {
      const config = await metadata.get()
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
    redeem: async (returned, checks) => {
      // A person who has signed in there can come back whatever became of the metadata since.
      const config = metadata.state().last?.value ?? (await metadata.get())
      if (returned.searchParams.get('state') !== checks.state) {
        const words = 'This answer of the identity provider belongs to another sign-in.'
        throw new OidcRefusedError('state_mismatch', words)
      }
      try {
        const tokens = await oidc.authorizationCodeGrant(config, returned, {
          expectedState: checks.state,
          expectedNonce: checks.nonce,
          pkceCodeVerifier: checks.verifier,
          idTokenExpected: true,
        })
        const claims = tokens.claims()!
        const { iss, sub, auth_time: authTime } = claims
        return {
          issuer: iss,
          subject: sub,
          ...(await findEmail(settings, claims, () => readUserInfo(config, tokens, sub))),
          authenticatedAtMs: typeof authTime === 'number' ? authTime * 1_000 : null,
        }
      } catch (error) {
        throw toOidcFault(error)
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
    timeout: oidcTimeoutSeconds,
  })
  if (clientSecret === undefined) return config
  const methods = config.serverMetadata().token_endpoint_auth_methods_supported
  // Without the field a provider takes the secret in the header.
  const takesHeader = methods?.includes('client_secret_basic') ?? true
  const authentication = takesHeader
    ? oidc.ClientSecretBasic(clientSecret)
    : oidc.ClientSecretPost(clientSecret)
  const own = new oidc.Configuration(config.serverMetadata(), clientId, metadata, authentication)
  own.timeout = oidcTimeoutSeconds
  for (const apply of execute) apply(own)
  return own
}

type Claims = Record<string, unknown>
type Email = Pick<OidcIdentity, 'email' | 'emailVerified'>

/** What the provider says of a person beside the signed answer; null where it says nothing. */
async function readUserInfo(
  config: oidc.Configuration,
  tokens: { access_token: string },
  subject: string,
): Promise<Claims | null> {
  if (config.serverMetadata().userinfo_endpoint === undefined) return null
  return oidc.fetchUserInfo(config, tokens.access_token, subject)
}

/**
 * The email of the signed answer and whether it is verified. What is missing there may be in the
 * user information, which counts for its own email only.
 */
async function findEmail(
  settings: OidcSettings,
  claims: Claims,
  ask: () => Promise<Claims | null>,
): Promise<Email> {
  const signed = toEmail(settings, claims)
  if (signed.email === null) return toEmail(settings, (await ask()) ?? {})
  if (signed.emailVerified !== null) return signed
  // Its signed answer is enough for an account that is bound already.
  const asked = toEmail(settings, (await ask().catch(() => null)) ?? {})
  return asked.email === signed.email ? asked : signed
}

function toEmail({ trustsEmails = false }: OidcSettings, claims: Claims): Email {
  const { email, email_verified: said } = claims
  // Some providers write a text. That "true" is meant is known of a provider that is trusted.
  const isFalse = said === false || said === 'false'
  const verified = said === true ? true : isFalse ? false : trustsEmails ? true : null
  return { email: typeof email === 'string' ? email : null, emailVerified: verified }
}
