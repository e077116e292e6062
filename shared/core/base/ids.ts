/**
 * The service's identifiers: how each is made and what shape it has. Deterministic ids are what
 * make every later stage idempotent: the same bytes are the same event, the same facts the same
 * alert.
 */
import { createHash, hash } from 'node:crypto'

/** A tenant slug: lower-case letters, digits and hyphens, 1 to 63 characters. */
export const tenantIdPattern = /^[a-z0-9][a-z0-9-]{0,62}$/

/**
 * The id of a telemetry event: 132 bits of SHA-256 over the exact body bytes, which name the
 * tenant. A retry of the same bytes is therefore the same event, at every edge and after every
 * rotation.
 * @param body the raw request body
 * @returns `evt_` and 22 base64url characters
 */
export function toEventId(body: Uint8Array): string {
  return `evt_${hash('sha256', body, 'base64url').slice(0, 22)}`
}

/**
 * An event's id as bytes, where as many as there are have to be kept: its 22 characters are 132
 * bits, four more are 0.
 * @returns 17 bytes; an id that is not one of ours is kept as its own digest
 */
export function toEventIdBytes(eventId: string): Buffer {
  const bytes = Buffer.from(`${eventId.slice(4)}A`, 'base64url')
  const own = bytes.length === eventIdBytes && eventId === fromEventIdBytes(bytes)
  return own ? bytes : hash('sha256', eventId, 'buffer').subarray(0, eventIdBytes)
}

const eventIdBytes = 17

/** The id that these 17 bytes are. */
export const fromEventIdBytes = (bytes: Uint8Array): string =>
  `evt_${Buffer.from(bytes).toString('base64url').slice(0, 22)}`

/**
 * The id of an alert: one per (tenant, device, session, action), however often it is raised.
 * The parts are length-prefixed, so that no two different facts can be spelled alike.
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
 * The id of the first delivery of an alert. It is the same on every retry, and the same again when
 * a scorer's transaction is repeated. Receivers see it as `X-Service-Delivery` and `webhook-id`.
 * @returns `dlv_` and 26 base64url characters
 */
export function toDeliveryId(alertId: string): string {
  return `dlv_${hash('sha256', `delivery:${alertId}`, 'base64url').slice(0, 26)}`
}

/**
 * The id that a test event has in an alert's place. No alert can have it: it is one character
 * longer than theirs.
 * @param random 16 random bytes
 * @returns `alr_test_` and 22 base64url characters
 */
export function toTestAlertId(random: Uint8Array): string {
  return `alr_test_${Buffer.from(random).toString('base64url')}`
}
