/**
 * Webhook signatures: `X-Service-Signature` of the public interface, and the Standard Webhooks
 * headers. `shared/client/webhook-check.ts` verifies both for receivers.
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import { signaturePattern } from '#shared/core/telemetry/signature-pattern.ts'
import { riskAlert } from './webhook-events.ts'

/** The delivery, attempt and time, which the Standard Webhooks signature covers. */
type DeliveryStamp = { deliveryId: string; attempt: number; timestampSeconds: number }

/** The key of a webhook secret for Standard Webhooks: the part after `whsec_`, decoded. */
export function standardWebhooksKey(secret: string): Buffer {
  return Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
}

/** The two keys of one webhook secret, ready to sign. */
export type WebhookKeys = { service: KeyObject; standard: KeyObject }

/**
 * Makes the keys of a webhook secret for many signatures: making them costs more than signing.
 * @param secret `whsec_...`
 */
export function toWebhookKeys(secret: string): WebhookKeys {
  return {
    service: createSecretKey(secret, 'utf8'),
    standard: createSecretKey(standardWebhooksKey(secret)),
  }
}

/**
 * All headers of one delivery attempt.
 * @param body the exact bytes sent
 * @param secret the tenant's webhook secret, `whsec_...`, or its keys
 * @returns header names in lower case
 */
export function signDelivery(
  body: Uint8Array,
  secret: string | WebhookKeys,
  stamp: DeliveryStamp,
  event: string = riskAlert,
): Record<string, string> {
  const keys = typeof secret === 'string' ? toWebhookKeys(secret) : secret
  const at = String(stamp.timestampSeconds)
  const standard = createHmac('sha256', keys.standard).update(`${stamp.deliveryId}.${at}.`)
  return {
    ...toDeliveryHeaders(stamp.deliveryId, event),
    'x-service-signature': createHmac('sha256', keys.service).update(body).digest('base64'),
    'x-service-attempt': String(stamp.attempt),
    'x-service-timestamp': at,
    'webhook-timestamp': at,
    'webhook-signature': `v1,${standard.update(body).digest('base64')}`,
  }
}

/** The headers that all attempts of a delivery share, names in lower case. */
export function toDeliveryHeaders(deliveryId: string, event: string): Record<string, string> {
  return {
    'content-type': 'application/json',
    'x-service-event': event,
    'x-service-delivery': deliveryId,
    'webhook-id': deliveryId,
  }
}

/**
 * Verifies `X-Service-Signature`. A receiver must call it before it acts on a delivery.
 * @param rawBody the unparsed body, exactly as received
 * @param header the value of `X-Service-Signature`
 * @param secret the webhook secret, `whsec_...`
 * @returns whether the delivery is genuine
 */
export function verifyDelivery(
  rawBody: Uint8Array | string,
  header: string | undefined,
  secret: string,
): boolean {
  if (header === undefined || !signaturePattern.test(header)) return false
  const expected = createHmac('sha256', secret).update(rawBody).digest()
  return timingSafeEqual(expected, Buffer.from(header, 'base64'))
}
