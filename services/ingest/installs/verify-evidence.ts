/**
 * Verifies the evidence of a registration. What does not hold is `rejected` with a reason, never an
 * error: a refusal would tell an attacker what to mend, and the policy weighs it.
 */
import type { InstallRequest } from '#shared/core/installs/install-request.ts'
import type {
  InstallProvider,
  installLevels,
  installVerdicts,
} from '#shared/core/installs/registration.ts'
import type { CategorySignals } from '#shared/core/signals/signal-definition.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'

export type VerifiedEvidence = {
  provider: InstallProvider
  verdict: (typeof installVerdicts)[number]
  /** Of the first failed step; null unless rejected. */
  reason: string | null
  level: (typeof installLevels)[number]
  /** The attested key of the install: SPKI in base64 of a P-256 key; null without one. */
  publicKey: string | null
  /** As `issuers` of a registration; empty without a chain. */
  issuers: string[]
  /** Whether each phone has an issuer of its own. */
  remotelyProvisioned: boolean
  /** The phone's model as the evidence says it; empty where it does not. */
  deviceModel: string
  /** Server signals of category `attestation` that hold as long as the token. */
  signals: CategorySignals
}

/**
 * @param request its body is well-formed; its challenge may be expired or another service's
 * @throws only for faults of this service, which are answered 503
 */
export type VerifyEvidence = (request: InstallRequest, tenant: Tenant) => Promise<VerifiedEvidence>

/** Verifies installs without evidence; what the other providers say is not believed. */
export const verifyEvidence: VerifyEvidence = async ({ evidence, challengeFault }) =>
  evidence.provider === 'none'
    ? toUnverified('none', 'none', null)
    : toUnverified(
        evidence.provider,
        'rejected',
        challengeFault === null ? 'unsupported_provider' : 'challenge_mismatch',
      )

/** Evidence that proves nothing. */
export function toUnverified(
  provider: InstallProvider,
  verdict: 'none' | 'rejected',
  reason: string | null,
): VerifiedEvidence {
  return {
    provider,
    verdict,
    reason,
    level: 'none',
    publicKey: null,
    issuers: [],
    remotelyProvisioned: false,
    deviceModel: '',
    signals: verdict === 'rejected' ? { rejected: true } : {},
  }
}
