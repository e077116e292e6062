/**
 * The service's identifiers. They are deterministic, which makes every later stage idempotent: the
 * same bytes are the same event, the same facts the same alert.
 */
import { createHash, hash } from 'node:crypto'

/** A tenant slug: lower-case letters, digits and hyphens, 1 to 63 characters. */
export const tenantIdPattern = /^[a-z0-9][a-z0-9-]{0,62}$/

/**
 * The id of a telemetry event: 132 bits of SHA-256 over the exact body bytes, which include the
 * tenant. A retry of the same bytes is the same event at every edge and after every rotation.
 * @param body the raw request body
 * @returns `evt_` and 22 base64url characters
 */
export function toEventId(body: Uint8Array): string {
  return `evt_${hash('sha256', body, 'base64url').slice(0, 22)}`
}

/**
 * An event's id as bytes, to keep many in memory: its 22 characters are 132 bits, padded with four
 * zero bits.
 * @returns 17 bytes; for an id of another form, the first 17 of its SHA-256
 */
export function toEventIdBytes(eventId: string): Buffer {
  const bytes = Buffer.from(`${eventId.slice(4)}A`, 'base64url')
  const own = bytes.length === eventIdBytes && eventId === fromEventIdBytes(bytes)
  return own ? bytes : hash('sha256', eventId, 'buffer').subarray(0, eventIdBytes)
}

const eventIdBytes = 17

/** The inverse of `toEventIdBytes`. */
export const fromEventIdBytes = (bytes: Uint8Array): string =>
  `evt_${Buffer.from(bytes).toString('base64url').slice(0, 22)}`

/**
 * The id of an alert: one per (tenant, device, session, action), however often it is raised. The
 * parts are length-prefixed, so that different facts have different texts.
 * @returns `alr_` and 26 base64url characters (156 bits)
 */
export function toAlertId(fact: {
  tenantId: string
  deviceId: string
  sessionId: string
  action: string
}): string {
  const digest = createHash('sha256')
  for (const part of [fact.tenantId, fact.deviceId, fact.sessionId, fact.action]) {
    digest.update(`${Buffer.byteLength(part)}:${part}`)
  }
  return `alr_${digest.digest('base64url').slice(0, 26)}`
}

/**
 * The id of the first delivery of an alert. It is the same on every retry, and when a scorer
 * repeats its transaction. Receivers see it as `X-Service-Delivery` and `webhook-id`.
 * @returns `dlv_` and 26 base64url characters
 */
export function toDeliveryId(alertId: string): string {
  return `dlv_${hash('sha256', `delivery:${alertId}`, 'base64url').slice(0, 26)}`
}

/**
 * The id of the delivery of an alert's update.
 * @param dispositionId of the change, in the alert's history
 * @returns `dlv_` and 26 base64url characters
 */
export function toUpdateDeliveryId(alertId: string, dispositionId: number): string {
  return `dlv_${hash('sha256', `update:${alertId}:${dispositionId}`, 'base64url').slice(0, 26)}`
}

/**
 * The alert id of a test event. No alert can have it, because it is one character longer.
 * @param random 16 random bytes
 * @returns `alr_test_` and 22 base64url characters
 */
export function toTestAlertId(random: Uint8Array): string {
  return `alr_test_${Buffer.from(random).toString('base64url')}`
}
