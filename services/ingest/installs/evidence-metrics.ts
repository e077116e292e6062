/**
 * Metrics of attestation: why evidence is rejected, by tenant. Tenants are bounded; providers,
 * verdicts and reasons are closed sets.
 */
import { attestationReasons } from '#shared/core/attestation/reasons.ts'
import { createBoundedLabel } from '#shared/core/base/bounded-labels.ts'
import type { EventEvidence } from '#shared/core/installs/event-evidence.ts'
import type { VerifiedEvidence } from '#shared/core/installs/evidence-signals.ts'
import { type Metrics, startAtZero } from '#shared/io/process/metrics.ts'

/** Why evidence got no verdict. */
type Failure = 'tenant_full' | 'full' | 'time_limit' | 'thread'
const failures: readonly Failure[] = ['tenant_full', 'full', 'time_limit', 'thread']

export type EvidenceMetrics = {
  /** Counts the verdict of a registration. */
  verified: (tenantId: string, evidence: VerifiedEvidence) => void
  /** Counts a registration that got none. */
  failed: (reason: Failure) => void
  /** Counts the verdict of the evidence of one event. */
  event: (tenantId: string, evidence: EventEvidence) => void
}

/** Tenants with a label of their own: a hundred times some twenty codes that occur. */
const tenantLabelsMax = 100

/** @param waiting how many checks wait or run */
export function createEvidenceMetrics(metrics: Metrics, waiting: () => number): EvidenceMetrics {
  const toTenant = createBoundedLabel(tenantLabelsMax)
  const registrations = metrics.counter(
    'di_ingest_registration_evidence_total',
    'Evidence of registrations by tenant, provider, verdict and reason',
    ['tenant', 'provider', 'verdict', 'reason'],
  )
  const events = metrics.counter(
    'di_ingest_event_evidence_total',
    'Evidence that came with events, by tenant, provider, verdict and reason',
    ['tenant', 'provider', 'verdict', 'reason'],
  )
  const unverified = metrics.counter(
    'di_ingest_evidence_unverified_total',
    'Registrations whose evidence was not verified, by reason: their senders got a 429 or a 503',
    ['reason'],
  )
  startAtZero(
    unverified,
    failures.map((reason) => ({ reason })),
  )
  metrics.gauge('di_ingest_evidence_waiting', 'Evidence that waits for its verification', {
    collect() {
      this.set(waiting())
    },
  })
  return {
    verified: (tenantId, { provider, verdict, reason }) =>
      registrations.inc({
        tenant: toTenant(tenantId),
        provider,
        verdict,
        reason: toReason(reason),
      }),
    failed: (reason) => unverified.inc({ reason }),
    event: (tenantId, { provider, verdict, reason }) =>
      events.inc({ tenant: toTenant(tenantId), provider, verdict, reason: toReason(reason) }),
  }
}

const toReason = (reason: string | null): string => {
  if (reason === null) return 'none'
  return Object.hasOwn(attestationReasons, reason) ? reason : 'other'
}
