/**
 * Apple App Attest. Your server verifies attestations and assertions; this maps what it found. A
 * device or an extension that does not support App Attest is not measured, which is not "failed".
 */
import type { PartialSignals } from '../telemetry.ts'
import { allOf, checkReport } from './check-report.ts'

export type AppAttestReport = {
  /** `DCAppAttestService.isSupported` */
  supported?: boolean
  /** Whether the attestation of the key was genuine: certificate chain, app id, key id. */
  attestationValid?: boolean
  /** Whether the assertion was genuine: signature, app id, a counter above the last one. */
  assertionValid?: boolean
  /** Whether attestation or assertion answers the challenge that your server sent. */
  challengeMatches?: boolean
}

/** What your server found, and its signal. */
export const appAttestFields = {
  attestationValid: 'tamper.app_attest_valid',
  assertionValid: 'tamper.app_attest_valid',
  challengeMatches: 'tamper.attestation_nonce_mismatch',
  supported: 'tamper.attestation_provider',
} as const

const reportShape = {
  what: 'what your server found',
  members: allOf(Object.keys(appAttestFields), 'boolean'),
}

/**
 * Maps the result of your verification to signals.
 * @throws TypeError when the report is none
 */
export function fromAppAttest(report: AppAttestReport): PartialSignals {
  checkReport('fromAppAttest: report', report, reportShape)
  const { supported, attestationValid, assertionValid, challengeMatches } = report
  if (supported === false) return { tamper: { attestation_provider: 'none' } }
  const results = [attestationValid, assertionValid].filter((valid) => typeof valid === 'boolean')
  return {
    tamper: {
      attestation_provider: 'app_attest',
      ...(results.length === 0 ? {} : { app_attest_valid: !results.includes(false) }),
      ...(typeof challengeMatches !== 'boolean'
        ? {}
        : { attestation_nonce_mismatch: !challengeMatches }),
    },
  }
}
