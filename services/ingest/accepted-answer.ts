/**
 * What an accepted submission is answered: the score and, by the tenant's setting, why; and the
 * verdict token that it asked for.
 */
import { type AttestationReason, attestationReasons } from '#shared/core/attestation/reasons.ts'
import { warningsMax } from '#shared/core/base/limits/telemetry.ts'
import type { EventEvidence } from '#shared/core/installs/event-evidence.ts'
import type { Score } from '#shared/core/scoring/score.ts'
import { sandboxForced } from '#shared/core/telemetry/sandbox.ts'
import type { SignalWarning } from '#shared/core/telemetry/signal-warnings.ts'
import { readVerdictRequest, type Telemetry } from '#shared/core/telemetry/submission.ts'
import { findWarnings } from '#shared/core/telemetry/warnings/find-warnings.ts'
import { hasServerEvidence } from '#shared/core/velocity/score-mismatch.ts'
import type { VerdictAttestation } from '#shared/core/verdicts/verdict-token.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import type { IssuedVerdict, IssueVerdict } from './verdicts/issue-verdict.ts'

/** What was decided on a submission. */
export type AcceptedFacts = {
  tenant: Tenant
  issueVerdict: IssueVerdict | undefined
  score: Score
  receivedAtMs: number
  attestation: VerdictAttestation
  /** What came in `X-Service-Attestation`; null without it. */
  evidence: EventEvidence | null
}

/** @returns null when the submission asks for no verdict */
export function findVerdict(
  telemetry: Telemetry,
  eventId: string,
  { tenant, issueVerdict, score, receivedAtMs, attestation }: AcceptedFacts,
): IssuedVerdict | null {
  const request = readVerdictRequest(telemetry)
  if (request === null) return null
  if (issueVerdict === undefined) return { token: null, result: 'no_key' }
  return issueVerdict({
    tenantId: tenant.tenantId,
    deviceId: telemetry.device_id,
    sessionId: telemetry.session_id,
    userId: telemetry.user_id,
    eventId,
    request,
    score: score.score,
    action: score.action,
    attestation,
    receivedAtMs,
  })
}

/** The body of the 200: JSON in ASCII. */
export function toAnswer(
  telemetry: Telemetry,
  eventId: string,
  facts: AcceptedFacts,
  verdictToken: string | null,
): string {
  const { tenant, score } = facts
  const answer = {
    status: 'accepted',
    rasp_score: score.score,
    rasp_action: score.action,
    event_id: eventId,
  }
  const token = verdictToken === null ? {} : { verdict_token: verdictToken }
  if (tenant.ingestAnswer === 'interface') return JSON.stringify({ ...answer, ...token })
  const flags = score.reasons.map(({ code }) => code)
  const warnings = tenant.environment === 'sandbox' ? findSandboxWarnings(telemetry, facts) : []
  if (warnings.length === 0) return JSON.stringify({ ...answer, flags, ...token })
  // Warnings hold names that the client chose.
  return escapeNonAscii(JSON.stringify({ ...answer, flags, warnings, ...token }))
}

/** JSON in ASCII, for texts that the client chose. */
export const escapeNonAscii = (json: string): string =>
  json.replace(/[\u0080-\uffff]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })

function findSandboxWarnings(
  telemetry: Telemetry,
  { tenant, score, receivedAtMs, evidence }: AcceptedFacts,
): SignalWarning[] {
  const isForced = score.reasons.some(({ code }) => code === sandboxForced)
  const raspScore = isForced || hasServerEvidence(score.reasons) ? null : score.score
  const { clientAddress, policy } = tenant
  const found = findWarnings(telemetry, { raspScore, receivedAtMs, clientAddress }, policy ?? {})
  return [...findEvidenceWarnings(evidence), ...found].slice(0, warningsMax)
}

/** Evidence that counts as none is accepted; it is a mistake in the app. */
function findEvidenceWarnings(evidence: EventEvidence | null): SignalWarning[] {
  if (evidence === null || evidence.proven || evidence.verdict !== 'rejected') return []
  const reason = evidence.reason as AttestationReason
  const message = `counts as none, ${reason}: ${attestationReasons[reason]?.meaning ?? ''}`.trim()
  return [{ path: 'X-Service-Attestation', code: 'evidence_rejected', message, nearest: null }]
}
