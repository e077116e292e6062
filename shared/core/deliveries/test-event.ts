/**
 * A test event: an operator sends one to see whether a webhook works. It has the shape of an alert,
 * so that a receiver runs its real code on it. Its event name, its field `test` and its ids show
 * that it is no alert.
 */
import { toAlert, unchanged } from '#shared/core/alerts/alert.ts'
import type { Alert } from '#shared/core/alerts/alert-schema.ts'
import { type AlertCandidate, noConnection, toAlertRow } from '#shared/core/alerts/decide-alert.ts'
import { toDeliveryId, toTestAlertId } from '#shared/core/base/ids.ts'
import { sandboxForced } from '#shared/core/telemetry/sandbox.ts'

/** The body of a test event. */
type TestEvent = { test: true } & Alert

/** The device id, session id and event id of a test event. */
const testEntityId = 'webhook-test'
const testScore = 50

/**
 * Makes a test event.
 * @param random 16 random bytes
 * @param nowMs the wall clock, in ms since 1970
 * @returns the event and the id of its delivery
 */
export function toTestEvent(
  tenantId: string,
  random: Uint8Array,
  nowMs: number,
): { deliveryId: string; event: TestEvent } {
  const alertId = toTestAlertId(random)
  const candidate: AlertCandidate = {
    alertId,
    tenantId,
    deviceId: testEntityId,
    sessionId: testEntityId,
    eventId: testEntityId,
    userId: null,
    action: 'REVIEW',
    riskScore: testScore,
    raspScore: testScore,
    reasons: [{ code: sandboxForced, weight: testScore, evidence: { test: true } }],
    policyVersion: 1,
    platform: null,
    sdkVersion: null,
    appVersion: null,
    deviceModel: null,
    connection: noConnection,
  }
  // Receivers expect a number from 1. One that tracks `seq` skips 1 as already processed.
  const row = toAlertRow(candidate, { seq: 1, createdAt: new Date(nowMs) })
  const alert = toAlert({ ...row, ...unchanged })
  return { deliveryId: toDeliveryId(alertId), event: { test: true, ...alert } }
}
