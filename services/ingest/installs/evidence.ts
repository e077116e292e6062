/** Verifies the evidence of registrations, and counts why it is rejected. */
import { decodeBase64 } from '#shared/core/attestation/encodings.ts'
import type { Evidence } from '#shared/core/attestation/recognize.ts'
import { noEvidence, type VerifiedEvidence } from '#shared/core/installs/evidence-signals.ts'
import type { EvidenceMetrics } from './evidence-metrics.ts'
import type { EvidencePool, EvidenceTenant } from './evidence-pool.ts'

/** What is needed of a registration's body. */
export type RegistrationEvidence = {
  /** As the service made it: base64url, which the phone decodes. */
  challenge: string
  app?: { id: string } | null | undefined
  evidence: Evidence | { provider: 'none' }
}

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
  return async ({ challenge, app, evidence }, tenant) => {
    const verified =
      evidence.provider === 'none'
        ? noEvidence
        : await pool.verify(
            {
              evidence,
              // The route has checked it: what is no base64 is no challenge of the service.
              challenge: decodeBase64(challenge) ?? Buffer.alloc(0),
              packageName: app?.id ?? null,
            },
            tenant,
          )
    metrics.verified(tenant.tenantId, verified)
    return verified
  }
}
