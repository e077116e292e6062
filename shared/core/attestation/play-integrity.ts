/**
 * Google's Play Integrity, classic requests: a token that Google signed and encrypted with the two
 * keys of the tenant. What Google says of phone, app and account are facts, which a policy weighs;
 * an empty list of them is a value that genuine phones have too. Standard requests can be opened by
 * Google's servers alone and are not supported.
 */
import { compactDecrypt, compactVerify, errors } from 'jose'
import { z } from 'zod'
import {
  playHeaderCharactersMax,
  playTokenAgeMsMax,
  playTokenAheadMsMax,
  playTokenCharactersMax,
} from '../base/limits/attestation.ts'
import { type AttestedApp, findAndroidApp } from './apps.ts'
import { decodeBase64, toBase64 } from './encodings.ts'
import type { PlayKeys } from './play-keys.ts'
import { type AttestationReason, Refusal } from './reasons.ts'
import { type AttestationCheck, type AttestationLevel, type StepLog, startSteps } from './steps.ts'

export type PlayIntegrityInput = {
  token: string
  keys: PlayKeys
  /** Null reports the nonce and does not judge it: for finding faults, never for a decision. */
  nonce: Uint8Array | null
  /** Null reports the app and does not judge it. */
  apps: readonly AttestedApp[] | null
  /** Of the tenant: testing responses count in a sandbox alone. Null reports them. */
  environment: 'live' | 'sandbox' | null
  nowMs: number
}

const text = z.string().max(256)

/** What names neither request nor app: of another form it counts as left out. */
const lenient = <T extends z.ZodType>(schema: T) => schema.optional().catch(undefined)
const label = lenient(text)
const labels = lenient(
  z
    .array(z.unknown())
    .max(64)
    .transform((values) => values.filter((value) => text.safeParse(value).success) as string[]),
)

/**
 * What is read of a verdict. Every part but the request can be missing where Google is unsure, and
 * null is as good as missing.
 */
const verdictSchema = z.looseObject({
  requestDetails: z.looseObject({
    requestPackageName: z.string().max(256),
    nonce: z.string().max(1_024).nullish(),
    requestHash: z.unknown().optional(),
    timestampMillis: z.union([z.string().regex(/^\d{1,15}$/), z.int().nonnegative()]),
  }),
  appIntegrity: z
    .looseObject({
      appRecognitionVerdict: label,
      packageName: text.nullish(),
      certificateSha256Digest: z.array(text).max(64).nullish(),
      versionCode: lenient(z.union([z.string().max(32), z.number()])),
    })
    .nullish(),
  deviceIntegrity: lenient(
    z.looseObject({
      deviceRecognitionVerdict: labels,
      deviceAttributes: lenient(
        z.looseObject({ sdkVersion: lenient(z.union([z.string().max(32), z.number()])) }),
      ),
      recentDeviceActivity: lenient(z.looseObject({ deviceActivityLevel: label })),
    }),
  ),
  accountDetails: lenient(z.looseObject({ appLicensingVerdict: label })),
  testingDetails: z.unknown().optional(),
  environmentDetails: lenient(
    z.looseObject({
      playProtectVerdict: label,
      appAccessRiskVerdict: lenient(z.looseObject({ appsDetected: labels })),
    }),
  ),
})

type Verdict = z.infer<typeof verdictSchema>

/**
 * Verifies a token.
 * @returns the steps until one that the next ones need fails. It never throws for what was sent.
 */
export async function checkPlayIntegrity(input: PlayIntegrityInput): Promise<AttestationCheck> {
  const log = startSteps('play_integrity')
  const facts: Record<string, unknown> = { not_judged: listUnjudged(input) }
  const verdict = await openToken(input, log)
  if (verdict === null) return log.end(facts, 'none')
  Object.assign(facts, toFacts(verdict))
  checkNonce(verdict, input, log)
  checkPackage(verdict, log)
  checkAge(verdict, input.nowMs, log)
  checkTesting(verdict, input, log)
  if (input.apps !== null) checkApp(verdict, input.apps, log)
  const isForThis = !log.hasFailed(['nonce', 'package', 'age', 'testing'])
  return log.end(facts, isForThis ? toLevel(verdict) : 'none')
}

function listUnjudged({ nonce, apps }: PlayIntegrityInput): string[] {
  return [...(nonce === null ? ['challenge'] : []), ...(apps === null ? ['app'] : [])]
}

async function openToken({ token, keys }: PlayIntegrityInput, log: StepLog) {
  const isToken = log.attempt(
    'token',
    () => checkForm(token),
    () => 'a compact JWE',
  )
  if (isToken === null) return null
  const signed = await settle('decryption', log, 'decryption_failed', async () => {
    const opened = await compactDecrypt(token, keys.decryptionKey, {
      keyManagementAlgorithms: ['A256KW'],
      contentEncryptionAlgorithms: ['A256GCM'],
      // Google does not compress, and what was compressed can grow.
      maxDecompressedLength: 0,
    })
    return opened.plaintext
  })
  if (signed === null) return null
  const payload = await settle('signature', log, 'signature_invalid', async () => {
    const verified = await compactVerify(signed, keys.verificationKey, { algorithms: ['ES256'] })
    return verified.payload
  })
  if (payload === null) return null
  return log.attempt(
    'verdict',
    () => readVerdict(payload),
    ({ requestDetails }) => `of ${requestDetails.requestPackageName}`,
  )
}

/** Five parts of base64url, the first of which is parsed before anything is verified. */
function checkForm(token: string): true {
  if (token.length > playTokenCharactersMax) {
    throw new Refusal('too_large', `${token.length} characters`)
  }
  const parts = token.split('.')
  if (parts.length !== 5 || parts.some((part) => !isBase64Url(part))) {
    throw new Refusal('malformed', 'not five parts of base64url')
  }
  if (parts[0]!.length > playHeaderCharactersMax) {
    throw new Refusal('too_large', 'a header that is too long')
  }
  return true
}

/** Decoders skip what is none and the spare bits of the last character: one spelling may pass. */
const isBase64Url = (part: string): boolean =>
  Buffer.from(part, 'base64url').toString('base64url') === part

const refusals: readonly [kind: new (...args: never[]) => Error, reason: AttestationReason][] = [
  [errors.JOSEAlgNotAllowed, 'algorithm_not_allowed'],
  [errors.JOSENotSupported, 'algorithm_not_allowed'],
  [errors.JWEInvalid, 'malformed'],
  [errors.JWSInvalid, 'malformed'],
]

async function settle<T>(
  step: string,
  log: StepLog,
  otherwise: AttestationReason,
  open: () => Promise<T>,
): Promise<T | null> {
  try {
    const value = await open()
    log.pass(step, 'with the key of the tenant')
    return value
  } catch (error) {
    const reason = refusals.find(([kind]) => error instanceof kind)?.[1] ?? otherwise
    log.fail(step, new Refusal(reason, error instanceof Error ? error.message : 'refused'))
    return null
  }
}

function readVerdict(payload: Uint8Array): Verdict {
  let document: unknown
  try {
    document = JSON.parse(Buffer.from(payload).toString('utf8'))
  } catch {
    throw new Refusal('malformed', 'no JSON was signed')
  }
  const parsed = verdictSchema.safeParse(document)
  if (parsed.success) return parsed.data
  const path = parsed.error.issues[0]?.path.join('.')
  throw new Refusal('malformed', `${path || 'the verdict'} is missing or of another form`)
}

/**
 * Whether the verdict was chosen in the Play Console, for a tester's account: Google says
 * nothing of the phone then. What is there in another form counts as such, too.
 */
function isTesting({ testingDetails: details }: Verdict): boolean {
  if (details === undefined || details === null) return false
  return (details as { isTestingResponse?: unknown }).isTestingResponse !== false
}

const toIssuedMs = ({ requestDetails }: Verdict): number => Number(requestDetails.timestampMillis)

function toFacts(verdict: Verdict): Record<string, unknown> {
  const { requestDetails, appIntegrity, deviceIntegrity, accountDetails, environmentDetails } =
    verdict
  return {
    package: requestDetails.requestPackageName,
    nonce: requestDetails.nonce ?? null,
    issued_at: toIssuedMs(verdict),
    is_testing: isTesting(verdict),
    app_recognition: appIntegrity?.appRecognitionVerdict ?? null,
    app_version: appIntegrity?.versionCode ?? null,
    signers: (appIntegrity?.certificateSha256Digest ?? []).map(toDigest).map(toBase64),
    device_recognition: deviceIntegrity?.deviceRecognitionVerdict ?? [],
    device_activity: deviceIntegrity?.recentDeviceActivity?.deviceActivityLevel ?? null,
    sdk_version: deviceIntegrity?.deviceAttributes?.sdkVersion ?? null,
    app_licensing: accountDetails?.appLicensingVerdict ?? null,
    play_protect: environmentDetails?.playProtectVerdict ?? null,
    app_access_risk: environmentDetails?.appAccessRiskVerdict?.appsDetected ?? [],
  }
}

/** Base64url without padding in Google's tokens. A text that is no digest is that of no signer. */
const toDigest = (text: string): Buffer => decodeBase64(text) ?? Buffer.alloc(0)

function checkNonce({ requestDetails }: Verdict, { nonce }: PlayIntegrityInput, log: StepLog) {
  log.attempt(
    'nonce',
    () => {
      const given = requestDetails.nonce
      if (typeof given !== 'string') {
        const isStandard = typeof requestDetails.requestHash === 'string'
        throw new Refusal(isStandard ? 'standard_request' : 'challenge_mismatch', 'no nonce')
      }
      if (nonce === null) return
      if (decodeBase64(given)?.equals(nonce)) return
      throw new Refusal('challenge_mismatch', `the token is for ${given}`)
    },
    () => (nonce === null ? 'there is one; not judged' : 'equal'),
  )
}

function checkPackage({ requestDetails, appIntegrity }: Verdict, log: StepLog): void {
  const { requestPackageName: requested } = requestDetails
  const recognized = appIntegrity?.packageName ?? requested
  log.judge('package', recognized === requested, 'package_mismatch', {
    held: requested,
    failed: `asked by ${requested}, recognized as ${recognized}`,
  })
}

function checkAge(verdict: Verdict, nowMs: number, log: StepLog): void {
  const ageMs = nowMs - toIssuedMs(verdict)
  const isAhead = ageMs < -playTokenAheadMsMax
  log.judge(
    'age',
    !isAhead && ageMs <= playTokenAgeMsMax,
    isAhead ? 'token_from_future' : 'token_too_old',
    { held: `${Math.round(ageMs / 1_000)} s`, failed: `${Math.round(ageMs / 1_000)} s` },
  )
}

/** Verdicts of one's own choice are for trying an app out, where nothing depends on them. */
function checkTesting(verdict: Verdict, { environment }: PlayIntegrityInput, log: StepLog): void {
  const held = isTesting(verdict) ? 'a testing response' : 'a verdict of Google’s'
  log.judge('testing', !isTesting(verdict) || environment !== 'live', 'testing_response', {
    held: environment === null ? `${held}; not judged` : held,
    failed: 'the verdict was chosen in the Play Console',
  })
}

/** Signers are missing where Google did not evaluate the app: then the package decides. */
function checkApp(
  { requestDetails, appIntegrity }: Verdict,
  apps: readonly AttestedApp[],
  log: StepLog,
): void {
  const { requestPackageName: name } = requestDetails
  const digests = appIntegrity?.certificateSha256Digest ?? null
  log.attempt(
    'app',
    () => {
      const isListed = apps.some(({ platform, id }) => platform === 'android' && id === name)
      if (digests === null && isListed) return name
      return findAndroidApp(apps, [name], (digests ?? []).map(toDigest)).id
    },
    (id) => (digests === null ? `${id}; Google names no signer` : id),
  )
}

/** Strong integrity is backed by hardware. The others can be too, but do not say so. */
function toLevel({ deviceIntegrity }: Verdict): AttestationLevel {
  const verdicts = deviceIntegrity?.deviceRecognitionVerdict ?? []
  if (verdicts.includes('MEETS_STRONG_INTEGRITY')) return 'hardware'
  const isSoftware = ['MEETS_DEVICE_INTEGRITY', 'MEETS_BASIC_INTEGRITY'].some((name) =>
    verdicts.includes(name),
  )
  return isSoftware ? 'software' : 'none'
}
