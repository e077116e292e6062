/**
 * From an event and what is known of its device to an alert: when one is raised, which id it has
 * and what it looks like to the REST API and to the webhook.
 */

import { toAlertId } from '#shared/core/base/ids.ts'
import type { Reason } from '#shared/core/scoring/scoring.ts'
import { toSeverity } from '#shared/core/scoring/scoring.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/messages.ts'
import type { Risk } from '#shared/core/velocity/correlation.ts'

export const dispositions = ['OPEN', 'REVIEWED', 'FALSE_POSITIVE', 'CONFIRMED'] as const
export type Disposition = (typeof dispositions)[number]

/** What every alert begins with; from there an operator may set any of the four. */
export const initialDisposition: Disposition = 'OPEN'

/** The actions that raise an alert. */
export const decisions = ['REVIEW', 'BLOCK'] as const
export type Decision = (typeof decisions)[number]

/** An alert that is to be raised, before it has its place in the tenant's sequence. */
export type AlertDraft = {
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
}

/** An alert as clients see it, over REST and by webhook. */
export type Alert = {
  alert_id: string
  seq: number
  decision: { action: Decision; severity: string; risk_score: number }
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
 * Decides whether an event raises an alert.
 * @returns the draft, or null when the action is ALLOW
 */
export function decideAlert(event: AcceptedEvent, risk: Risk): AlertDraft | null {
  if (risk.action === 'ALLOW') return null
  const { device_id: deviceId, session_id: sessionId } = event.body
  return {
    alertId: toAlertId({
      tenantId: event.tenant_id,
      deviceId,
      sessionId,
      action: risk.action,
    }),
    tenantId: event.tenant_id,
    deviceId,
    sessionId,
    userId: event.body.user_id ?? event.body.account_id ?? null,
    eventId: event.event_id,
    action: risk.action,
    riskScore: risk.riskScore,
    raspScore: event.rasp_score,
    reasons: risk.reasons,
    policyVersion: event.policy_version,
  }
}

/**
 * The one shape of an alert.
 * @param createdAt when it was committed; rendered as ISO-8601 UTC with milliseconds
 */
export function toAlert(
  draft: Omit<AlertDraft, 'tenantId' | 'eventId' | 'policyVersion'>,
  more: { seq: number; disposition: Disposition; createdAt: Date },
): Alert {
  return {
    alert_id: draft.alertId,
    seq: more.seq,
    decision: {
      action: draft.action,
      severity: toSeverity(draft.riskScore),
      risk_score: draft.riskScore,
    },
    rasp_score: draft.raspScore,
    entity: {
      device: { device_id: draft.deviceId },
      session: { session_id: draft.sessionId },
      ...(draft.userId === null ? {} : { user: { user_id: draft.userId } }),
    },
    flags: draft.reasons.map((reason) => reason.code),
    reasons: draft.reasons,
    disposition: more.disposition,
    created_at: more.createdAt.toISOString(),
  }
}
