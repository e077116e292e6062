/**
 * Verifies verdict tokens with WebCrypto alone. First the signature, by the one algorithm of the
 * service, then the time, and then whether the token answers the question that was asked.
 */
import { verdictToleranceSeconds } from '#shared/core/base/limits/client.ts'
import { checkClock, checkNames, checkNumber, describe, fail } from '../check-arguments.ts'
import { VerdictVerificationError } from '../errors.ts'
import {
  type FindVerdictKeys,
  toKeyFinder,
  type VerdictKey,
  type VerdictKeySource,
} from './verdict-keys.ts'
import { readClaims, readToken, type UnverifiedToken, type Verdict } from './verdict-token.ts'

export type VerifyVerdictOptions = {
  /** The service's keys; see `VerdictKeySource`. */
  keys: VerdictKeySource
  /** The `audience` that the app asked with, such as `checkout`: the claim `purpose`. */
  audience: string
  /** The nonce that your backend made for this question. Accept each nonce once. */
  nonce: string
  /**
   * Your tenant's slug: the claim `aud`. One service signs for all of its tenants with one key, so
   * give it wherever the service has tenants that are not yours.
   */
  tenantId?: string
  /** The setting SERVICE_ISSUER of the service: the claim `iss`. Not compared unless given. */
  issuer?: string
  /** How far the clocks may be apart, in seconds; 60 unless given. */
  toleranceSeconds?: number
  /** The verifier's clock in ms since 1970; the system's unless given. */
  nowMs?: number
}

type ImportedKey = object
/** What is used of WebCrypto; not every runtime has types of it. */
export type VerdictCrypto = {
  importKey: (
    format: 'jwk',
    key: object,
    algorithm: object,
    extractable: boolean,
    usages: ['verify'],
  ) => Promise<ImportedKey>
  verify: (
    algorithm: object,
    key: ImportedKey,
    signature: Uint8Array,
    data: Uint8Array,
  ) => Promise<boolean>
}

const optionNames = ['keys', 'audience', 'nonce', 'tenantId', 'issuer', 'toleranceSeconds', 'nowMs']

/**
 * @throws TypeError for an argument that is a mistake of the caller
 * @throws VerdictVerificationError when the token must not be believed
 * @throws VerdictKeysError when the keys cannot be fetched
 */
export async function checkVerdict(
  crypto: VerdictCrypto,
  token: unknown,
  options: VerifyVerdictOptions,
): Promise<Verdict> {
  const findKeys = checkArguments(options)
  // What an app sends in its place is no mistake of the caller.
  if (typeof token !== 'string') throw new VerdictVerificationError('malformed')
  const unverified = readToken(token)
  const keys = await findKeys(unverified.keyId)
  if (keys.length === 0) throw new VerdictVerificationError('unknown_key')
  if (!(await isSigned(crypto, unverified, keys))) throw new VerdictVerificationError('forged')
  const verdict = readClaims(unverified.claims)
  checkTimes(verdict, options)
  const { issuer, tenantId, audience, nonce } = options
  if (issuer !== undefined && verdict.issuer !== issuer)
    throw new VerdictVerificationError('issuer')
  if (tenantId !== undefined && verdict.tenantId !== tenantId) {
    throw new VerdictVerificationError('tenant')
  }
  if (verdict.purpose !== audience) throw new VerdictVerificationError('audience')
  if (verdict.nonce !== nonce) throw new VerdictVerificationError('nonce')
  return verdict
}

function checkArguments(options: VerifyVerdictOptions): FindVerdictKeys {
  checkNames('options', options, optionNames)
  checkText('audience', options.audience, 'pass the audience that the app asked with')
  checkText('nonce', options.nonce, 'pass the nonce that your backend made for this question')
  if (options.tenantId !== undefined) checkText('tenantId', options.tenantId, 'pass the slug')
  if (options.issuer !== undefined) checkText('issuer', options.issuer, 'pass SERVICE_ISSUER')
  checkNumber('toleranceSeconds', options.toleranceSeconds, { min: 0, unit: 'seconds' })
  checkClock(options.nowMs)
  return toKeyFinder(options.keys)
}

function checkText(name: string, value: unknown, advice: string): void {
  if (typeof value === 'string' && value !== '') return
  fail(name, `is ${value === '' ? 'empty' : describe(value)}: ${advice}`)
}

const ecdsa = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

/** Keys as WebCrypto has them, by the entry of the set. */
const imported = new WeakMap<VerdictKey, Promise<ImportedKey | null>>()

async function isSigned(
  crypto: VerdictCrypto,
  { data, signature }: UnverifiedToken,
  keys: readonly VerdictKey[],
): Promise<boolean> {
  for (const entry of keys) {
    const key = imported.get(entry) ?? importKey(crypto, entry)
    imported.set(entry, key)
    const usable = await key
    if (usable !== null && (await crypto.verify(ecdsa, usable, signature, data))) return true
  }
  return false
}

/** @returns null for a point that is not on the curve, or no point at all */
function importKey(crypto: VerdictCrypto, { x, y }: VerdictKey): Promise<ImportedKey | null> {
  const jwk = { kty: 'EC', crv: 'P-256', x, y }
  return crypto.importKey('jwk', jwk, ecdsa, false, ['verify']).catch(() => null)
}

function checkTimes(
  { issuedAtMs, expiresAtMs }: Verdict,
  { nowMs = Date.now(), toleranceSeconds = verdictToleranceSeconds }: VerifyVerdictOptions,
): void {
  const toleranceMs = toleranceSeconds * 1000
  if (nowMs >= expiresAtMs + toleranceMs) throw new VerdictVerificationError('expired')
  if (nowMs < issuedAtMs - toleranceMs) throw new VerdictVerificationError('future')
}
