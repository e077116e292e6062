/**
 * Webhook signatures, for the sender and for receivers: `X-Service-Signature` of the public
 * interface, and the Standard Webhooks headers. Receivers verify over the raw body.
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import { signaturePattern } from '#shared/core/telemetry/signature.ts'
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
 * @param before the keys of the secret before, as long as it signs as well: in `webhook-signature`
 *   alone, since `X-Service-Signature` is one signature
 * @returns header names in lower case
 */
export function signDelivery(
  body: Uint8Array,
  secret: string | WebhookKeys,
  stamp: DeliveryStamp,
  event: string = riskAlert,
  before: WebhookKeys | null = null,
): Record<string, string> {
  const keys = typeof secret === 'string' ? toWebhookKeys(secret) : secret
  const at = String(stamp.timestampSeconds)
  const standard = [keys, ...(before === null ? [] : [before])].map((one) => {
    const hmac = createHmac('sha256', one.standard).update(`${stamp.deliveryId}.${at}.`)
    return `v1,${hmac.update(body).digest('base64')}`
  })
  return {
    ...toDeliveryHeaders(stamp.deliveryId, event),
    'x-service-signature': createHmac('sha256', keys.service).update(body).digest('base64'),
    'x-service-attempt': String(stamp.attempt),
    'x-service-timestamp': at,
    'webhook-timestamp': at,
    'webhook-signature': standard.join(' '),
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

/** The three headers of Standard Webhooks, with lower-case names as in Node. */
type StandardWebhookHeaders = {
  readonly [name: string]: string | readonly string[] | undefined
}

type StandardWebhookCheck = {
  /** The receiver's clock. */
  nowSeconds: number
  /** How far the signed time may differ from it; an older one may be a replay attack. */
  toleranceSeconds?: number
}

/**
 * Verifies the Standard Webhooks signature, which also covers the delivery id and the time of the
 * attempt. As specified, one genuine signature of the header's list suffices, and versions other
 * than `v1` are ignored.
 * @param rawBody the unparsed body, exactly as received
 * @param headers at least `webhook-id`, `webhook-timestamp` and `webhook-signature`
 * @param secret the webhook secret, `whsec_...`
 * @returns whether the delivery is genuine and its attempt is at most 5 minutes away
 */
export function verifyStandardWebhook(
  rawBody: Uint8Array | string,
  headers: StandardWebhookHeaders,
  secret: string,
  { nowSeconds, toleranceSeconds = 300 }: StandardWebhookCheck,
): boolean {
  const id = headers['webhook-id']
  const at = headers['webhook-timestamp']
  const listed = headers['webhook-signature']
  if (typeof id !== 'string' || typeof at !== 'string' || typeof listed !== 'string') return false
  // A dot in the id or the time could move bytes between id, time and body.
  if (!/^[^.\s]+$/.test(id) || !/^\d{1,12}$/.test(at)) return false
  if (Math.abs(nowSeconds - Number(at)) > toleranceSeconds) return false
  const expected = createHmac('sha256', standardWebhooksKey(secret))
    .update(`${id}.${at}.`)
    .update(rawBody)
    .digest()
  let genuine = false
  for (const entry of listed.split(' ').slice(0, signaturesMax)) {
    const text = entry.startsWith('v1,') ? entry.slice(3) : ''
    if (!signaturePattern.test(text)) continue
    if (timingSafeEqual(expected, Buffer.from(text, 'base64'))) genuine = true
  }
  return genuine
}

/** Signatures of one header that are checked: a rotation lists two. */
const signaturesMax = 16
