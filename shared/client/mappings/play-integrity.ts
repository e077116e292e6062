/**
 * Google Play Integrity: the decoded payload of a token. Verdicts go into the signals unchanged,
 * since the policy weighs them by value; `UNEVALUATED` and `UNKNOWN` weigh nothing.
 */
import type { PartialSignals } from '../telemetry.ts'

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
 */
export function fromPlayIntegrity(
  payload: PlayIntegrityPayload | null,
  expected?: ExpectedRequest,
): PartialSignals {
  if (payload === null) return {}
  const { appIntegrity, deviceIntegrity: device, accountDetails, environmentDetails } = payload
  const recall = device?.deviceRecall?.values
  const values: NonNullable<PartialSignals['tamper']> = {
    attestation_provider: 'play_integrity',
    attestation_nonce_mismatch:
      expected === undefined ? null : !isExpected(payload.requestDetails ?? {}, expected),
    pi_device_verdict: device === undefined ? null : (device.deviceRecognitionVerdict ?? []),
    pi_app_verdict: appIntegrity?.appRecognitionVerdict ?? null,
    pi_licensing: accountDetails?.appLicensingVerdict ?? null,
    pi_account_activity: accountDetails?.accountActivity?.activityLevel ?? null,
    pi_recent_activity: device?.recentDeviceActivity?.deviceActivityLevel ?? null,
    pi_device_recall_bits: recall === undefined ? null : toBits(recall),
    pi_play_protect: environmentDetails?.playProtectVerdict ?? null,
    pi_app_access_risk: environmentDetails?.appAccessRiskVerdict?.appsDetected ?? null,
  }
  const measured = Object.entries(values).filter(([, value]) => value !== null)
  return { tamper: Object.fromEntries(measured) }
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
