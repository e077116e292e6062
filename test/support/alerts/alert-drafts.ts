// Alert drafts for tests: what the scorer would hand to the alert store.
import type { AlertDraft } from '#shared/core/alerts/alert-rules.ts'
import { toAlertId } from '#shared/core/base/ids.ts'

/** A draft whose id follows from its tenant, device, session and action, as in production. */
export function draftAlert(
  some: Partial<AlertDraft> & Pick<AlertDraft, 'tenantId' | 'sessionId'>,
): AlertDraft {
  const draft = {
    deviceId: 'device-1',
    userId: null,
    eventId: `evt_${some.sessionId}`,
    action: 'REVIEW' as const,
    riskScore: 55,
    raspScore: 50,
    reasons: [{ code: 'ROOTED', weight: 55, evidence: { signals: ['root.su_binary'] } }],
    policyVersion: 1,
    ...some,
  }
  return { ...draft, alertId: some.alertId ?? toAlertId(draft) }
}
