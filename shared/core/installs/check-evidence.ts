/** Checks evidence of any provider: a registration's at the edge, and a file's for a person. */
import { checkAppAttest } from '#shared/core/attestation/app-attest.ts'
import type { AttestedApp } from '#shared/core/attestation/apps.ts'
import { checkKeyAttestation } from '#shared/core/attestation/key-attestation.ts'
import { checkPlayIntegrity } from '#shared/core/attestation/play-integrity.ts'
import type { PlayKeys } from '#shared/core/attestation/play-keys.ts'
import { Refusal } from '#shared/core/attestation/reasons.ts'
import type { EvidenceFile } from '#shared/core/attestation/recognize.ts'
import type { AttestationRoots } from '#shared/core/attestation/roots.ts'
import type { StatusList } from '#shared/core/attestation/status-list.ts'
import { type AttestationCheck, startSteps } from '#shared/core/attestation/steps.ts'

/** What evidence is for. */
export type Expected = {
  /** The bytes of the challenge or of the nonce; null reports it and judges nothing. */
  challenge: Uint8Array | null
}

/** What it is judged by. */
export type EvidenceContext = {
  /** Null reports the app and does not judge it. */
  apps: readonly AttestedApp[] | null
  /** Of the app that a Play token is said to be of; null where the tenant has none. */
  playKeys: PlayKeys | null
  /** Null judges no revocation. */
  statusList: StatusList | null
  /** Of the tenant; null reports what only a sandbox takes. */
  environment: 'live' | 'sandbox' | null
  roots: AttestationRoots
  nowMs: number
}

/** @returns the steps; it never throws for what was sent */
export async function checkEvidence(
  evidence: Exclude<EvidenceFile, { kind: 'assertion' }>,
  { challenge }: Expected,
  { apps, playKeys, statusList, environment, roots, nowMs }: EvidenceContext,
): Promise<AttestationCheck> {
  switch (evidence.kind) {
    case 'key_attestation': {
      const { chain } = evidence
      const { keyAttestation } = roots
      return checkKeyAttestation({
        chain,
        challenge,
        apps,
        statusList,
        roots: keyAttestation,
        nowMs,
      })
    }
    case 'app_attest': {
      const { object: attestation, keyId } = evidence
      return checkAppAttest({
        attestation,
        challenge,
        keyId,
        apps,
        roots: roots.appAttest,
        nowMs,
      })
    }
    case 'play_integrity': {
      if (playKeys === null) return refuseWithoutKeys()
      const { token } = evidence
      const common = { nonce: challenge, apps, environment, nowMs }
      return checkPlayIntegrity({ token, keys: playKeys, ...common })
    }
  }
}

function refuseWithoutKeys(): AttestationCheck {
  const log = startSteps('play_integrity')
  log.fail('decryption', new Refusal('play_keys_missing', 'there are none for this app'))
  return log.end({ not_judged: [] }, 'none')
}

/** The built-in roots, and after them those that only sandbox tenants trust. */
export function addRoots(roots: AttestationRoots, more: AttestationRoots): AttestationRoots {
  return {
    keyAttestation: [...roots.keyAttestation, ...more.keyAttestation],
    appAttest: [...roots.appAttest, ...more.appAttest],
  }
}
