/** Verifies the evidence of registrations, and counts why it is rejected. */
import { noEvidence, type VerifiedEvidence } from '#shared/core/installs/evidence-signals.ts'
import type { InstallRequest } from '#shared/core/installs/install-request.ts'
import type { EvidenceMetrics } from './evidence-metrics.ts'
import type { EvidencePool, EvidenceTenant } from './evidence-pool.ts'
import { toUnverified } from './verify-evidence.ts'

/** What is needed of a registration's body. */
export type RegistrationEvidence = Pick<
  InstallRequest,
  'challenge' | 'challengeFault' | 'app' | 'evidence'
>

/**
 * @returns what is `VerifyEvidence` to the route: it rejects nothing that it can judge
 * @throws Problem as `EvidencePool.verify`
 */
export function createRegistrationEvidence({
  pool,
  metrics,
}: {
  pool: Pick<EvidencePool, 'verify'>
  metrics: Pick<EvidenceMetrics, 'verified'>
}): (request: RegistrationEvidence, tenant: EvidenceTenant) => Promise<VerifiedEvidence> {
  return async (request, tenant) => {
    const verified = await verify(pool, request, tenant)
    metrics.verified(tenant.tenantId, verified)
    return verified
  }
}

async function verify(
  pool: Pick<EvidencePool, 'verify'>,
  { challenge, challengeFault, app, evidence }: RegistrationEvidence,
  tenant: EvidenceTenant,
): Promise<VerifiedEvidence> {
  if (evidence.provider === 'none') return noEvidence
  // What was made over another challenge, or too long ago, proves nothing, whoever signed it.
  if (challengeFault !== null) {
    const unproven = toUnverified(evidence.provider, 'rejected', 'challenge_mismatch')
    if (evidence.provider === 'play_integrity') return unproven
    return { ...unproven, signals: { ...unproven.signals, hardware_backed: false } }
  }
  return await pool.verify({ evidence, challenge, packageName: app?.id ?? null }, tenant)
}
