/**
 * Registers an install: a challenge of the service, evidence for it, and a registration that the
 * tenant's secret signs. The answer has a token and a key, with which the install signs its
 * telemetry itself.
 */
import { challengeMs } from '#shared/core/base/limits/installs.ts'
import { TelemetryRefusedError } from '../errors.ts'
import { type Sign, signHeaders } from '../send-telemetry.ts'
import { type CallOptions, callService } from '../service-call.ts'
import {
  checkAppOf,
  checkChallengeOptions,
  checkEvidence,
  checkRegisterOptions,
} from './check-install.ts'
import type {
  Challenge,
  Install,
  InstallAttestation,
  InstallEvidence,
  RegisterOptions,
} from './install-types.ts'

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
  const challengeAddress = address.replace(/installs$/, 'challenge')
  for (let attempt = 1; ; attempt++) {
    const beganMs = performance.now()
    const asked = await getChallenge(challengeAddress, options)
    const made = await getEvidence!(asked.challenge)
    checkEvidence('getEvidence()', made)
    checkAppOf(options.app, made)
    // A slow phone has one new challenge: for an old one its evidence would be rejected.
    if (attempt < attemptsMax && performance.now() - beganMs > challengeMs) continue
    const registering = { address, challenge: asked.challenge, evidence: made }
    try {
      return await postRegistration(sign, registering, options)
    } catch (error) {
      if (attempt >= attemptsMax || !isStaleChallenge(error)) throw error
    }
  }
}

/** Challenges that evidence is made for, before the last refusal is the caller's. */
const attemptsMax = 2

const isStaleChallenge = (error: unknown): boolean =>
  error instanceof TelemetryRefusedError &&
  error.refusal.errors.some(({ path }) => path === '$.challenge')

type Registering = { address: string; challenge: string; evidence: InstallEvidence }

async function postRegistration(
  sign: Sign,
  { address, challenge, evidence }: Registering,
  options: RegisterOptions,
): Promise<Install> {
  const { tenantId, deviceId, app, deviceModel, hmacSecret } = options
  const content = {
    tenant_id: tenantId,
    device_id: deviceId,
    challenge,
    ...(app === undefined ? {} : { app: { platform: app.platform, id: app.id } }),
    ...(deviceModel === undefined ? {} : { device_model: deviceModel }),
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
