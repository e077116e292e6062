/**
 * Registers an install: a challenge of the service, evidence for it, and a registration that the
 * tenant's secret signs. The answer has a token and a key, with which the install signs its
 * telemetry itself.
 */
import { TelemetryRefusedError } from '../errors.ts'
import { type Sign, signHeaders } from '../send-telemetry.ts'
import { type CallOptions, callService } from '../service-call.ts'
import { checkChallengeOptions, checkEvidence, checkRegisterOptions } from './check-install.ts'

/** What evidence has to answer, within two minutes. */
export type Challenge = {
  /** Base64url of 40 bytes. */
  challenge: string
  /** ISO-8601. */
  expiresAt: string
}

/**
 * Evidence of the platform for a challenge. Binary values are base64.
 * - `key_attestation`: the certificates of the Android KeyStore, leaf first, each in DER.
 * - `app_attest`: the key id and the object of Apple's `attestKey`, for SHA-256 of the challenge.
 * - `play_integrity`: a token of a classic request whose nonce is the challenge.
 * - `none`: no platform attests this install.
 */
export type InstallEvidence =
  | { provider: 'key_attestation'; chain: string[] }
  | { provider: 'app_attest'; key_id: string; attestation: string }
  | { provider: 'play_integrity'; token: string }
  | { provider: 'none' }

/** The app that the evidence is of. */
export type InstallApp = {
  platform: 'android' | 'ios'
  /** The package name or the bundle id. */
  id: string
}

/**
 * What a registration needs: `getEvidence`, or `challenge` and `evidence` where the app has
 * fetched the challenge itself and its server registers.
 */
export type RegisterOptions = CallOptions & {
  tenantId: string
  /** The device id that the telemetry of the install has. */
  deviceId: string
  /** The tenant's private HMAC secret: it signs the registration, and no telemetry. */
  hmacSecret: string
  app?: InstallApp
  /** Makes evidence for a challenge, base64url of 40 bytes. */
  getEvidence?: (challenge: string) => InstallEvidence | Promise<InstallEvidence>
  challenge?: string
  evidence?: InstallEvidence
}

/** What the service says of the evidence. */
export type InstallAttestation = {
  provider: string
  /** Evidence that does not hold registers too, as `rejected`: the policy weighs it. */
  verdict: 'verified' | 'rejected' | 'none'
  /** The code of the first step that failed; null otherwise. */
  reason: string | null
  level: 'strongbox' | 'hardware' | 'software' | 'none'
}

/** A registered install. Keep it where only the app can read it: the key signs for the device. */
export type Install = {
  installToken: string
  installKey: string
  /** ISO-8601. After it the service refuses the token: register again. */
  expiresAt: string
  attestation: InstallAttestation
}

type ChallengeAnswer = { challenge: string; expires_at: string }
type RegistrationAnswer = {
  status: 'registered'
  install_token: string
  install_key: string
  expires_at: string
  attestation: InstallAttestation
}

const areTexts = (value: unknown, names: readonly string[]): boolean => {
  const members = (value ?? {}) as Record<string, unknown>
  return names.every((name) => typeof members[name] === 'string')
}

const isChallenge = (value: unknown): value is ChallengeAnswer =>
  areTexts(value, ['challenge', 'expires_at'])

const isRegistration = (value: unknown): value is RegistrationAnswer =>
  areTexts(value, ['status', 'install_token', 'install_key', 'expires_at']) &&
  areTexts((value as RegistrationAnswer).attestation, ['provider', 'verdict', 'level'])

/**
 * Fetches a challenge, as `fetchChallenge` of both entries. It needs no secret.
 * @throws TypeError for an argument that is a mistake of the caller
 */
export async function fetchChallenge(options: CallOptions): Promise<Challenge> {
  const address = checkChallengeOptions(options)
  return getChallenge(address, options)
}

async function getChallenge(address: string, options: CallOptions): Promise<Challenge> {
  const request = { subject: 'the challenge', method: 'GET', address, headers: {} } as const
  const answer = await callService({ ...request, body: null, isResult: isChallenge }, options)
  return { challenge: answer.challenge, expiresAt: answer.expires_at }
}

/** Registers an install as `registerInstall` does, signed by the cryptography of a runtime. */
export async function registerSigned(sign: Sign, options: RegisterOptions): Promise<Install> {
  const address = checkRegisterOptions(options)
  const { challenge, evidence, getEvidence } = options
  if (challenge !== undefined && evidence !== undefined) {
    return postRegistration(sign, { address, challenge, evidence }, options)
  }
  const attempt = async () => {
    const asked = await getChallenge(address.replace(/installs$/, 'challenge'), options)
    const made = await getEvidence!(asked.challenge)
    checkEvidence('getEvidence()', made)
    return postRegistration(sign, { address, challenge: asked.challenge, evidence: made }, options)
  }
  // Making evidence can take long, as on a busy phone: one new challenge, then it is an error.
  return attempt().catch((error: unknown) => {
    if (isStaleChallenge(error)) return attempt()
    throw error
  })
}

const isStaleChallenge = (error: unknown): boolean =>
  error instanceof TelemetryRefusedError && error.refusal.code === 'challenge_invalid'

type Registering = { address: string; challenge: string; evidence: InstallEvidence }

async function postRegistration(
  sign: Sign,
  { address, challenge, evidence }: Registering,
  options: RegisterOptions,
): Promise<Install> {
  const { tenantId, deviceId, app, hmacSecret } = options
  const content = {
    tenant_id: tenantId,
    device_id: deviceId,
    challenge,
    ...(app === undefined ? {} : { app: { platform: app.platform, id: app.id } }),
    evidence,
  }
  const body = new TextEncoder().encode(JSON.stringify(content))
  const headers = await signHeaders(sign, body, { ...options, hmacSecret })
  const request = { subject: 'the registration', method: 'POST', address, headers, body } as const
  const answer = await callService({ ...request, isResult: isRegistration }, options)
  const { provider, verdict, level, reason = null } = answer.attestation
  return {
    installToken: answer.install_token,
    installKey: answer.install_key,
    expiresAt: answer.expires_at,
    attestation: { provider, verdict, reason, level },
  }
}
