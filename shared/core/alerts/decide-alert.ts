/** When an event raises an alert. */
import { toAlertId } from '#shared/core/base/ids.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import type { Risk } from '#shared/core/velocity/correlation.ts'
import type { AlertCandidate } from './alert.ts'

/**
 * Decides whether an event raises an alert.
 * @returns null when the action is ALLOW
 */
export function decideAlert(event: AcceptedEvent, risk: Risk): AlertCandidate | null {
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
