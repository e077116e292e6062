/** Everything that verifies evidence at an edge, from the settings of the process. */
import { type StatusFile, startStatusFile } from '#shared/io/attestation/status-file.ts'
import { readTestRoots } from '#shared/io/attestation/test-roots.ts'
import type { StopSteps } from '#shared/io/process/lifecycle.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import type { IngestConfig } from '../config.ts'
import { createEventEvidence, type VerifyEventEvidence } from './event-evidence.ts'
import { createEvidenceMetrics } from './evidence-metrics.ts'
import { createEvidencePool } from './evidence-pool.ts'
import { createVerifyEvidence, type VerifyEvidence } from './verify-evidence.ts'

export type OpenedEvidence = {
  /** Of a registration, whose signature held. */
  verifyEvidence: VerifyEvidence
  /** Of an event, whose signature held. */
  verifyEvent: VerifyEventEvidence
  /** The status list in force. */
  revoked: StatusFile['revoked']
  /** For `/readyz`. */
  warning: StatusFile['warning']
}

/** @throws Error when the file of test roots cannot be used */
export function openEvidence(
  config: Pick<IngestConfig, 'ATTESTATION_STATUS_FILE' | 'ATTESTATION_TEST_ROOTS_FILE'>,
  {
    lifecycle,
    log,
    metrics: registry,
    wallMs,
  }: { lifecycle: StopSteps; log: Log; metrics: Metrics; wallMs: () => number },
): OpenedEvidence {
  const findRoots = readTestRoots(config.ATTESTATION_TEST_ROOTS_FILE)
  const status = startStatusFile(config, { lifecycle, log, metrics: registry, wallMs })
  const metrics = createEvidenceMetrics(registry, () => pool.waiting())
  const pool = createEvidencePool({ findRoots, revoked: status.packed, metrics, log, wallMs })
  lifecycle.onStop('evidence', pool.close)
  return {
    verifyEvidence: createVerifyEvidence({ pool, metrics }),
    verifyEvent: createEventEvidence({ pool, metrics }),
    revoked: status.revoked,
    warning: status.warning,
  }
}
