/**
 * A test event: an operator sends one to see whether a webhook works. It has the shape of an alert,
 * so that a receiver runs its real code on it. Its event name, its field `test` and its ids show
 * that it is no alert.
 */

import { toAlert } from '#shared/core/alerts/alert.ts'
import type { Alert } from '#shared/core/alerts/alert-schema.ts'
import { initialDisposition } from '#shared/core/alerts/dispositions.ts'
import { toDeliveryId, toTestAlertId } from '#shared/core/base/ids.ts'
import { sandboxForced } from '#shared/core/telemetry/sandbox.ts'

/** The event name, in `X-Service-Event`. It is sent once, and a failure does not count. */
export const webhookTestEvent = 'webhook.test'

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
  const alert = toAlert({
    alert_id: alertId,
    tenant_id: tenantId,
    event_id: testEntityId,
    // Receivers expect a number from 1. One that tracks `seq` skips 1 as already processed.
    seq: 1,
    device_id: testEntityId,
    session_id: testEntityId,
    user_id: null,
    action: 'REVIEW',
    risk_score: testScore,
    rasp_score: testScore,
    reasons: [{ code: sandboxForced, weight: testScore, evidence: { test: true } }],
    disposition: initialDisposition,
    created_at: new Date(nowMs),
  })
  return { deliveryId: toDeliveryId(alertId), event: { test: true, ...alert } }
}
