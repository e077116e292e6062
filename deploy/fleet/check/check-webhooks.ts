/**
 * Compares the received webhooks with the alert list: each alert was delivered with valid
 * signatures and the object of the API, nothing else was delivered, and all attempts had the same
 * bytes.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Received, ReceivedDelivery } from '../send/deliveries.ts'
import type { Latencies } from '../send/latencies.ts'
import type { Mismatch } from '../send/sent-events.ts'
import { dueMs } from './alert-model.ts'
import type { AlertModel } from './check-alerts.ts'
import type { ListedAlert } from './read-back.ts'

export type WebhookSummary = {
  /** Requests received, repeats included. */
  received: number
  verified: number
  unverified: number
  /** Alerts received at least once. */
  alerts: number
  /** Repeated requests of a delivery that no failure explains. */
  duplicates: number
  /** Requests answered 500 on purpose. */
  faults: number
  missing: number
}

/** Finds every mismatch of the deliveries of these alerts. */
export function checkWebhooks(alerts: readonly ListedAlert[], received: Received): Mismatch[] {
  const found: Mismatch[] = []
  const byAlert = groupByAlert(received)
  for (const alert of alerts) {
    const deliveries = byAlert.get(alert.alert_id) ?? []
    byAlert.delete(alert.alert_id)
    found.push(...checkDeliveries(alert, deliveries))
  }
  for (const [alert_id, deliveries] of byAlert) {
    const got = deliveries.map((one) => one.body.slice(0, 200))
    found.push({ what: 'webhook_foreign', alert_id, expected: 'an alert of the list', got })
  }
  for (const [fault, count] of Object.entries(received.refused)) {
    found.push({ what: 'webhook_unverified', expected: 0, got: { fault, count } })
  }
  return found
}

function groupByAlert(received: Received): Map<string, ReceivedDelivery[]> {
  const groups = new Map<string, ReceivedDelivery[]>()
  for (const delivery of received.deliveries.values()) {
    const group = groups.get(delivery.alertId)
    if (group === undefined) groups.set(delivery.alertId, [delivery])
    else group.push(delivery)
  }
  return groups
}

function checkDeliveries(alert: ListedAlert, deliveries: ReceivedDelivery[]): Mismatch[] {
  const place = {
    alert_id: alert.alert_id,
    device_id: alert.entity.device.device_id,
    session_id: alert.entity.session.session_id,
  }
  const [first, ...more] = deliveries
  if (first === undefined) return [{ what: 'webhook_missing', ...place, expected: 1, got: 0 }]
  const found: Mismatch[] = []
  if (more.length > 0) {
    const got = deliveries.map((one) => one.deliveryId)
    found.push({ what: 'webhook_deliveries', ...place, expected: 'one delivery', got })
  }
  for (const delivery of deliveries) {
    const payload = parse(delivery.body)
    const expected = { ...alert, disposition: 'OPEN', updated_at: alert.created_at }
    if (!isDeepStrictEqual(payload, expected)) {
      found.push({ what: 'webhook_payload', ...place, expected, got: payload })
    }
    if (delivery.changed) {
      const got = 'other bytes on a later attempt'
      found.push({ what: 'webhook_bytes', ...place, expected: 'the same bytes', got })
    }
  }
  return found
}

function parse(body: string): Record<string, unknown> {
  try {
    return JSON.parse(body) as Record<string, unknown>
  } catch {
    return {}
  }
}

/** Counts for the summary. */
export function summarizeWebhooks(
  alerts: readonly ListedAlert[],
  received: Received,
): WebhookSummary {
  const arrived = new Set([...received.deliveries.values()].map((one) => one.alertId))
  let duplicates = 0
  for (const { arrivals, faults } of received.deliveries.values()) {
    duplicates += Math.max(0, arrivals - 1 - faults)
  }
  return {
    received: received.requests,
    verified: received.verified,
    unverified: received.requests - received.verified,
    alerts: alerts.filter((alert) => arrived.has(alert.alert_id)).length,
    duplicates,
    faults: received.faults,
    missing: alerts.filter((alert) => !arrived.has(alert.alert_id)).length,
  }
}

/**
 * Records the time from the response to an alert's event until the webhook arrived. It skips alerts
 * whose event is uncertain.
 */
export function measureWebhooks(
  alerts: readonly ListedAlert[],
  received: Received,
  model: AlertModel,
  latencies: Latencies,
): void {
  const byAlert = groupByAlert(received)
  for (const alert of alerts) {
    const known = model.get(alert.entity.session.session_id)
    const due = known && dueMs(known.session, alert.decision.action)
    const firstMs = byAlert.get(alert.alert_id)?.[0]?.firstMs
    if (due === null || due === undefined || firstMs === undefined) continue
    // The webhook may arrive a few milliseconds before the answer to the phone.
    latencies.record(Math.max(0, firstMs - due))
  }
}
