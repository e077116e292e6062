// Alert candidates for tests, as the scorer passes them to the alert store.
import { type AlertCandidate, noConnection } from '#shared/core/alerts/decide-alert.ts'
import { toAlertId } from '#shared/core/base/ids.ts'

/** A candidate whose id follows from its tenant, device, session and action, as in production. */
export function makeAlertCandidate(
  some: Partial<AlertCandidate> & Pick<AlertCandidate, 'tenantId' | 'sessionId'>,
): AlertCandidate {
  const candidate = {
    deviceId: 'device-1',
    userId: null,
    eventId: `evt_${some.sessionId}`,
    action: 'REVIEW' as const,
    riskScore: 55,
    raspScore: 50,
    reasons: [{ code: 'ROOTED', weight: 55, evidence: { signals: ['root.su_binary'] } }],
    policyVersion: 1,
    platform: null,
    sdkVersion: null,
    appVersion: null,
    deviceModel: null,
    connection: noConnection,
    ...some,
  }
  return { ...candidate, alertId: some.alertId ?? toAlertId(candidate) }
}
