/**
 * Verifies the evidence that comes with events. A signature is checked at once: it costs what one
 * more request costs. A Play token goes to the thread that verifies registrations.
 */
import { hash } from 'node:crypto'
import { Problem } from '#shared/core/http/problem.ts'
import {
  checkEventSignature,
  type EventEvidence,
  type EventInstall,
  findPlayToken,
  toPlayEvidence,
} from '#shared/core/installs/event-evidence.ts'
import type { EvidenceMetrics } from './evidence-metrics.ts'
import type { EvidencePool, EvidenceTenant } from './evidence-pool.ts'

/**
 * @param header `X-Service-Attestation`, of an event whose signature held
 * @returns at once for a signature; a promise, which never fails, for a Play token
 */
export type VerifyEventEvidence = (
  header: string,
  body: Buffer,
  install: EventInstall,
  tenant: EvidenceTenant,
) => EventEvidence | Promise<EventEvidence>

export function createEventEvidence({
  pool,
  metrics,
}: {
  pool: Pick<EvidencePool, 'verify'>
  metrics: Pick<EvidenceMetrics, 'event'>
}): VerifyEventEvidence {
  return (header, body, install, tenant) => {
    const note = (evidence: EventEvidence) => {
      metrics.event(tenant.tenantId, evidence)
      return evidence
    }
    const token = findPlayToken(header)
    if (token === null) return note(checkEventSignature(header, body, install, tenant.apps.listed))
    const request = {
      evidence: { provider: 'play_integrity' as const, token },
      challenge: hash('sha256', body, 'buffer'),
      packageName: install.appId,
    }
    return pool.verify(request, tenant).then(toPlayEvidence, withoutRoom).then(note)
  }
}

/** An event without its verdict is accepted; the pool has counted why. */
function withoutRoom(error: unknown): EventEvidence {
  if (error instanceof Problem) return toPlayEvidence(null)
  throw error
}
