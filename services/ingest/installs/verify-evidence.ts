/**
 * Verifies the evidence of a registration. What does not hold is `rejected` with a reason, never an
 * error: a refusal would tell an attacker what to mend, and the policy weighs it.
 */
import { noEvidence, type VerifiedEvidence } from '#shared/core/installs/evidence-signals.ts'
import type { InstallRequest } from '#shared/core/installs/install-request.ts'
import type { InstallProvider } from '#shared/core/installs/registration.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'

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
  const signals = verdict === 'rejected' ? { rejected: true } : {}
  return { ...noEvidence, provider, verdict, reason, signals }
}
