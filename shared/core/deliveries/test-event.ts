/**
 * A test event: what an operator sends to see whether a webhook works. It has the shape of an
 * alert, so that a receiver runs its real code on it, and says that it is none in three places: its
 * event name, its `test`, and ids that no alert, device or session of an SDK has.
 */
import { type Alert, initialDisposition, toAlert } from '#shared/core/alerts/alert-rules.ts'
import { toDeliveryId, toTestAlertId } from '#shared/core/base/ids.ts'
import { sandboxForced } from '#shared/core/telemetry/sandbox.ts'

/** The event name, in `X-Service-Event`. Tried once; its failure says nothing of the webhook. */
export const webhookTestEvent = 'webhook.test'

/** The body of a test event. */
export type TestEvent = { test: true } & Alert

/** Stands where alerts have the ids of their device and session. */
const testEntityId = 'webhook-test'
const testScore = 50

/**
 * @param random 16 random bytes
 * @param nowMs the wall clock
 * @returns the event, and the id of its delivery in the form of every other
 */
export function toTestEvent(
  random: Uint8Array,
  nowMs: number,
): { deliveryId: string; event: TestEvent } {
  const alertId = toTestAlertId(random)
  const alert = toAlert(
    {
      alertId,
      deviceId: testEntityId,
      sessionId: testEntityId,
      userId: null,
      action: 'REVIEW',
      riskScore: testScore,
      raspScore: testScore,
      reasons: [{ code: sandboxForced, weight: testScore, evidence: { test: true } }],
    },
    // Receivers expect a number from 1: the first has been long ago, and is skipped by whoever
    // remembers how far they are.
    { seq: 1, disposition: initialDisposition, createdAt: new Date(nowMs) },
  )
  return { deliveryId: toDeliveryId(alertId), event: { test: true, ...alert } }
}
