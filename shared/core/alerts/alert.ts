/** An alert: what people decide of it, and its shape in the REST API and in webhooks. */
import { type Reason, type Severity, toSeverity } from '#shared/core/scoring/score.ts'

export const dispositions = ['OPEN', 'REVIEWED', 'FALSE_POSITIVE', 'CONFIRMED'] as const
export type Disposition = (typeof dispositions)[number]

/** The disposition of a new alert. An operator can set any of the four later. */
export const initialDisposition: Disposition = 'OPEN'

/** The actions that raise an alert. */
export const decisions = ['REVIEW', 'BLOCK'] as const
export type Decision = (typeof decisions)[number]

/** An alert that an event raises, before it has its `seq`. */
export type AlertCandidate = {
  alertId: string
  tenantId: string
  deviceId: string
  sessionId: string
  userId: string | null
  eventId: string
  action: Decision
  riskScore: number
  raspScore: number
  reasons: Reason[]
  policyVersion: number
  /** Continues the trace of the event; left out when it is not traced. */
  traceparent?: string
}

/** An alert as clients see it, in the REST API and in webhooks. */
export type Alert = {
  alert_id: string
  tenant_id: string
  /** The event that raised it. */
  event_id: string
  seq: number
  decision: { action: Decision; severity: Severity; risk_score: number }
  rasp_score: number
  entity: {
    device: { device_id: string }
    session: { session_id: string }
    user?: { user_id: string }
  }
  flags: string[]
  reasons: Reason[]
  disposition: Disposition
  created_at: string
}

/**
 * The alert as the REST API and webhooks show it.
 * @param more `createdAt` is the commit time, rendered as ISO-8601 UTC with milliseconds
 */
export function toAlert(
  candidate: Omit<AlertCandidate, 'policyVersion'>,
  more: { seq: number; disposition: Disposition; createdAt: Date },
): Alert {
  return {
    alert_id: candidate.alertId,
    tenant_id: candidate.tenantId,
    event_id: candidate.eventId,
    seq: more.seq,
    decision: {
      action: candidate.action,
      severity: toSeverity(candidate.riskScore),
      risk_score: candidate.riskScore,
    },
    rasp_score: candidate.raspScore,
    entity: {
      device: { device_id: candidate.deviceId },
      session: { session_id: candidate.sessionId },
      ...(candidate.userId === null ? {} : { user: { user_id: candidate.userId } }),
    },
    flags: candidate.reasons.map((reason) => reason.code),
    reasons: candidate.reasons,
    disposition: more.disposition,
    created_at: more.createdAt.toISOString(),
  }
}
