/**
 * Verifies the evidence of registrations, and counts why it is rejected. What does not hold is
 * `rejected` with a reason, never an error: a refusal would tell an attacker what to mend, and the
 * policy weighs it. What cannot be read says nothing of a phone: it is an error of the app, which
 * names the member.
 */
import { Problem } from '#shared/core/http/problem.ts'
import { noEvidence, type VerifiedEvidence } from '#shared/core/installs/evidence-signals.ts'
import type { InstallRequest } from '#shared/core/installs/install-request.ts'
import type { EvidenceMetrics } from './evidence-metrics.ts'
import type { EvidencePool, EvidenceTenant } from './evidence-pool.ts'

/** What is needed of a registration's body. */
export type RegistrationEvidence = Pick<
  InstallRequest,
  'challenge' | 'challengeFault' | 'app' | 'evidence'
>

/**
 * @param request its body is well-formed; its challenge may be expired or another service's
 * @throws Problem as `EvidencePool.verify`; invalid_body with the member that cannot be read
 */
export type VerifyEvidence = (
  request: RegistrationEvidence,
  tenant: EvidenceTenant,
) => Promise<VerifiedEvidence>

export function createVerifyEvidence({
  pool,
  metrics,
}: {
  pool: Pick<EvidencePool, 'verify'>
  metrics: Pick<EvidenceMetrics, 'verified'>
}): VerifyEvidence {
  return async (request, tenant) => {
    const verified = await verify(pool, request, tenant)
    metrics.verified(tenant.tenantId, verified)
    const { unreadable } = verified
    if (unreadable === null) return verified
    throw new Problem('invalid_body', 'The evidence cannot be read.', { errors: [unreadable] })
  }
}

async function verify(
  pool: Pick<EvidencePool, 'verify'>,
  { challenge, challengeFault, app, evidence }: RegistrationEvidence,
  tenant: EvidenceTenant,
): Promise<VerifiedEvidence> {
  if (evidence.provider === 'none') return noEvidence
  // A valid chain over another challenge, or an expired one, may be a copy of somebody else's.
  if (challengeFault !== null) return refuseChallenge(evidence.provider)
  return await pool.verify({ evidence, challenge, packageName: app?.id ?? null }, tenant)
}

function refuseChallenge(
  provider: Exclude<VerifiedEvidence['provider'], 'none'>,
): VerifiedEvidence {
  const hasKey = provider !== 'play_integrity'
  const signals = { rejected: true, ...(hasKey ? { hardware_backed: false } : {}) }
  return { ...noEvidence, provider, verdict: 'rejected', reason: 'challenge_mismatch', signals }
}
