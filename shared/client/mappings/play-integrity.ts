/**
 * Google Play Integrity: the decoded payload of a token. Verdicts go into the signals unchanged,
 * since the policy weighs them by value; `UNEVALUATED` and `UNKNOWN` weigh nothing.
 */
import type { PartialSignals } from '../telemetry.ts'
import { checkReport } from './check-report.ts'

/** The payload of a token, as Google's server or your own decryption returns it. */
export type PlayIntegrityPayload = {
  requestDetails?: { requestPackageName?: string; nonce?: string; requestHash?: string }
  appIntegrity?: { appRecognitionVerdict?: string }
  deviceIntegrity?: {
    deviceRecognitionVerdict?: string[]
    recentDeviceActivity?: { deviceActivityLevel?: string }
    deviceRecall?: {
      values?: { bitFirst?: boolean; bitSecond?: boolean; bitThird?: boolean }
    }
  }
  accountDetails?: {
    appLicensingVerdict?: string
    accountActivity?: { activityLevel?: string }
  }
  environmentDetails?: {
    playProtectVerdict?: string
    appAccessRiskVerdict?: { appsDetected?: string[] }
  }
}

/** What Google's server answers to `decodeIntegrityToken`. */
export type PlayIntegrityAnswer = { tokenPayloadExternal: PlayIntegrityPayload }

/** What your server asked for. Without it a token of another request is not noticed. */
export type ExpectedRequest = { packageName?: string; nonce?: string; requestHash?: string }

/** Fields of the payload and their signals. */
export const playIntegrityFields = {
  'deviceIntegrity.deviceRecognitionVerdict': 'tamper.pi_device_verdict',
  'appIntegrity.appRecognitionVerdict': 'tamper.pi_app_verdict',
  'accountDetails.appLicensingVerdict': 'tamper.pi_licensing',
  'accountDetails.accountActivity.activityLevel': 'tamper.pi_account_activity',
  'deviceIntegrity.recentDeviceActivity.deviceActivityLevel': 'tamper.pi_recent_activity',
  'deviceIntegrity.deviceRecall.values': 'tamper.pi_device_recall_bits',
  'environmentDetails.playProtectVerdict': 'tamper.pi_play_protect',
  'environmentDetails.appAccessRiskVerdict.appsDetected': 'tamper.pi_app_access_risk',
  requestDetails: 'tamper.attestation_nonce_mismatch',
} as const

/**
 * Maps a payload to signals. A payload is null when Google could not be asked, or the token not be
 * decrypted: then nothing is measured, which is not "failed". A device verdict without a label is an empty list: Google leaves the
 * list out when the device meets no level.
 * @throws TypeError when it is no payload, such as a token that is still to be decoded
 */
export function fromPlayIntegrity(
  payload: PlayIntegrityPayload | PlayIntegrityAnswer | null,
  expected?: ExpectedRequest,
): PartialSignals {
  if (payload === null) return {}
  const given = unwrap(payload)
  checkReport('fromPlayIntegrity: payload', given, payloadShape)
  if (expected !== undefined) checkExpected(expected)
  const { appIntegrity, deviceIntegrity: device, accountDetails, environmentDetails } = given
  const recall = device?.deviceRecall?.values
  const values: NonNullable<PartialSignals['tamper']> = {
    attestation_provider: 'play_integrity',
    attestation_nonce_mismatch:
      expected === undefined ? null : !isExpected(given.requestDetails ?? {}, expected),
    pi_device_verdict: isAbsent(device) ? null : (toLabels(device.deviceRecognitionVerdict) ?? []),
    pi_app_verdict: toLabel(appIntegrity?.appRecognitionVerdict),
    pi_licensing: toLabel(accountDetails?.appLicensingVerdict),
    pi_account_activity: toLabel(accountDetails?.accountActivity?.activityLevel),
    pi_recent_activity: toLabel(device?.recentDeviceActivity?.deviceActivityLevel),
    pi_device_recall_bits: isAbsent(recall) ? null : toBits(recall),
    pi_play_protect: toLabel(environmentDetails?.playProtectVerdict),
    pi_app_access_risk: toLabels(environmentDetails?.appAccessRiskVerdict?.appsDetected),
  }
  const measured = Object.entries(values).filter(([, value]) => value !== null)
  return { tamper: Object.fromEntries(measured) }
}

const isAbsent = (value: unknown): value is null | undefined =>
  value === undefined || value === null

/** Google adds values and leaves some out: what is no label is not measured. */
const toLabel = (value: unknown): string | null => (typeof value === 'string' ? value : null)

const toLabels = (values: unknown): string[] | null =>
  Array.isArray(values) ? values.filter((value) => typeof value === 'string') : null

/** Google's server answers `{ tokenPayloadExternal }`, and its client libraries put that into `data`. */
function unwrap(payload: PlayIntegrityPayload | PlayIntegrityAnswer): PlayIntegrityPayload {
  const { data } = (payload ?? {}) as { data?: PlayIntegrityAnswer }
  const answer = (data ?? payload ?? {}) as Partial<PlayIntegrityAnswer>
  return answer.tokenPayloadExternal ?? (payload as PlayIntegrityPayload)
}

const payloadShape = {
  what: "the decoded payload of a token, as Google's server or your own decryption gives it",
  members: {
    requestDetails: 'object',
    appIntegrity: 'object',
    deviceIntegrity: 'object',
    accountDetails: 'object',
    environmentDetails: 'object',
  },
} as const

function checkExpected(expected: unknown): void {
  checkReport('fromPlayIntegrity: expected', expected, {
    what: 'what your server asked for',
    members: { packageName: null, nonce: null, requestHash: null },
  })
}

type Recall = { bitFirst?: boolean; bitSecond?: boolean; bitThird?: boolean }

function toBits({ bitFirst, bitSecond, bitThird }: Recall): number {
  return (bitFirst ? 1 : 0) + (bitSecond ? 2 : 0) + (bitThird ? 4 : 0)
}

type Request = NonNullable<PlayIntegrityPayload['requestDetails']>

function isExpected(request: Request, expected: ExpectedRequest): boolean {
  const { packageName, nonce, requestHash } = expected
  return (
    (packageName === undefined || request.requestPackageName === packageName) &&
    (nonce === undefined || toPlainBase64(request.nonce) === toPlainBase64(nonce)) &&
    (requestHash === undefined || request.requestHash === requestHash)
  )
}

/** Google returns a nonce in base64 with either alphabet, with or without padding. */
function toPlainBase64(text: string | undefined): string | undefined {
  return text?.replaceAll('-', '+').replaceAll('_', '/').replaceAll('=', '')
}
