/**
 * Huawei SysIntegrity: the payload of its signed answer. Your server verifies the signature, the
 * chain and the host name first; this maps what the payload says.
 */
import type { BooleanSignal } from '../service-types.ts'
import type { PartialSignals } from '../telemetry.ts'
import { checkReport } from './check-report.ts'
import { type Finding, mergePartial, toPartialSignals, toUnknownSignals } from './merge-signals.ts'

/** Reasons in `detail` and their signals. */
export const huaweiDetails: Readonly<Record<string, BooleanSignal>> = {
  root: 'root.rooted',
  jailbreak: 'root.rooted',
  unlocked: 'root.bootloader_unlocked',
  emulator: 'emulator.is_emulator',
}

/** Other fields of the payload. */
export const huaweiFields = {
  basicIntegrity: 'root.system_integrity',
  nonce: 'tamper.attestation_nonce_mismatch',
  apkPackageName: 'tamper.package_name_mismatch',
  apkCertificateDigestSha256: 'tamper.signature_mismatch',
} as const

export type HuaweiIntegrityPayload = {
  basicIntegrity?: boolean
  /** Why it is false. */
  detail?: string | readonly string[]
  /** Base64 of the nonce of the request. */
  nonce?: string
  apkPackageName?: string
  /** Base64 of SHA-256 digests. */
  apkCertificateDigestSha256?: readonly string[]
}

/** What is right for your app and this request; what is absent is not compared. */
export type ExpectedHuaweiApp = {
  /** Base64. */
  nonce?: string
  packageName?: string
  /** Base64 of the SHA-256 of each of your certificates. */
  certificateDigests?: readonly string[]
}

const payloadShape = {
  what: 'the payload of the signed answer',
  members: {
    basicIntegrity: 'boolean' as const,
    detail: null,
    nonce: null,
    apkPackageName: null,
    apkCertificateDigestSha256: 'texts' as const,
  },
}
const expectedShape = {
  what: 'what is right for the request',
  members: { nonce: null, packageName: null, certificateDigests: 'texts' as const },
}

/**
 * Maps a payload to signals.
 * @param payload null when the service could not be asked or its answer not be read: not measured
 */
export function fromHuaweiSysIntegrity(
  payload: HuaweiIntegrityPayload | null,
  expected: ExpectedHuaweiApp = {},
): PartialSignals {
  if (payload === null) return {}
  checkReport('fromHuaweiSysIntegrity: payload', payload, payloadShape)
  checkReport('fromHuaweiSysIntegrity: expected', expected, expectedShape)
  const { basicIntegrity, detail = [] } = payload
  const reasons = typeof detail === 'string' ? [detail] : detail
  const whole = basicIntegrity === true
  const findings = Object.entries(huaweiDetails).map(([reason, signal]): Finding => {
    if (reasons.includes(reason)) return [signal, true]
    return [signal, whole ? false : undefined]
  })
  const unknown = reasons.filter((reason) => !Object.hasOwn(huaweiDetails, reason))
  // The reasons say more than the verdict. Without one that is known, the verdict has to do.
  const isExplained = unknown.length < reasons.length
  const verdict = whole ? 'ORIGINAL' : isExplained ? undefined : 'COMPROMISED'
  return mergePartial(
    { tamper: { attestation_provider: 'huawei_sysintegrity' } },
    basicIntegrity === undefined || verdict === undefined
      ? {}
      : { root: { system_integrity: verdict } },
    toPartialSignals([...findings, ...compare(payload, expected)]),
    toUnknownSignals('huawei', unknown),
  )
}

/** What the payload says of the request and the app, against what your server expects. */
function compare(payload: HuaweiIntegrityPayload, expected: ExpectedHuaweiApp): Finding[] {
  const { nonce, packageName, certificateDigests } = expected
  const given = (payload.apkCertificateDigestSha256 ?? []).map(toPlainBase64)
  const allowed = certificateDigests?.map(toPlainBase64)
  const isSigned = given.length > 0 && given.every((digest) => allowed?.includes(digest) === true)
  return [
    [
      huaweiFields.nonce,
      nonce === undefined
        ? undefined
        : payload.nonce === undefined || toPlainBase64(payload.nonce) !== toPlainBase64(nonce),
    ],
    [
      huaweiFields.apkPackageName,
      packageName === undefined ? undefined : payload.apkPackageName !== packageName,
    ],
    [huaweiFields.apkCertificateDigestSha256, allowed === undefined ? undefined : !isSigned],
  ]
}

/** Base64 of either alphabet, without padding. */
const toPlainBase64 = (text: string) =>
  text.replaceAll('-', '+').replaceAll('_', '/').replaceAll('=', '')
