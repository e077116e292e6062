/** Which step each kind of evidence fails at, by the reason: what the pages about attestation promise. */
import type { AttestationVector, VectorKind } from './vectors.ts'

type Reason = NonNullable<AttestationVector['reason']>

const path: readonly Reason[] = [
  'signature_invalid',
  'names_do_not_chain',
  'issuer_not_a_ca',
  'unsupported_algorithm',
]
const validity: readonly Reason[] = ['certificate_expired', 'certificate_not_yet_valid']
const app: readonly Reason[] = ['app_unknown', 'app_signer_unknown']

/** The steps of each kind in their order, with the reasons that each gives. */
export const vectorSteps: Record<VectorKind, Record<string, readonly Reason[]>> = {
  key_attestation: {
    certificates: ['chain_too_long', 'malformed', 'too_large'],
    root: ['untrusted_root'],
    path,
    validity,
    key_description: [
      'attestation_missing',
      'attestation_repeated',
      'attestation_misplaced',
      'key_description_malformed',
    ],
    challenge: ['challenge_mismatch'],
    security_level: ['software_key', 'security_level_mismatch'],
    origin: ['key_not_generated'],
    bootloader: ['root_of_trust_missing', 'bootloader_unlocked'],
    boot_state: ['boot_self_signed', 'boot_unverified'],
    app,
    revocation: ['revoked'],
  },
  app_attest: {
    attestation: ['malformed'],
    certificates: ['malformed', 'too_large'],
    root: ['untrusted_root'],
    path,
    validity,
    nonce: ['challenge_mismatch'],
    key_id: ['key_id_mismatch'],
    app,
    counter: ['counter_not_zero'],
    environment: ['environment_unknown', 'environment_not_allowed'],
    credential: ['credential_mismatch'],
  },
  assertion: {
    assertion: ['malformed'],
    signature: ['signature_invalid'],
    app,
  },
  play_integrity: {
    token: ['malformed', 'too_large'],
    decryption: ['decryption_failed', 'algorithm_not_allowed'],
    signature: ['signature_invalid', 'algorithm_not_allowed'],
    verdict: ['malformed'],
    nonce: ['challenge_mismatch', 'standard_request'],
    package: ['package_mismatch'],
    age: ['token_too_old', 'token_from_future'],
    testing: ['testing_response'],
    app,
  },
}

/** @returns the first step of the kind that gives this reason */
export function toStep(kind: VectorKind, reason: Reason): string {
  const found = Object.entries(vectorSteps[kind]).find(([, reasons]) => reasons.includes(reason))
  if (found === undefined) throw new Error(`no step of ${kind} gives ${reason}`)
  return found[0]
}
