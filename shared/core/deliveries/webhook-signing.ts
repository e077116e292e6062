/**
 * Webhook signatures, for the sender and for receivers: `X-Service-Signature` as the public
 * interface has it, and the Standard Webhooks headers beside it. Receivers verify over the raw
 * body.
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import { signaturePattern } from '#shared/core/telemetry/signature.ts'

/** A delivery's identity and moment, as signed into the Standard Webhooks signature. */
export type DeliveryStamp = { deliveryId: string; attempt: number; timestampSeconds: number }

/** The key bytes of a webhook secret for Standard Webhooks: what follows `whsec_`, decoded. */
export function standardWebhooksKey(secret: string): Buffer {
  return Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
}

/** The two keys of one webhook secret, ready to sign. */
export type WebhookKeys = { service: KeyObject; standard: KeyObject }

/**
 * Makes the keys of a webhook secret once for many signatures: making them costs more than signing.
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
  event = 'risk.alert',
): Record<string, string> {
  const keys = typeof secret === 'string' ? toWebhookKeys(secret) : secret
  const at = String(stamp.timestampSeconds)
  const standard = createHmac('sha256', keys.standard)
    .update(`${stamp.deliveryId}.${at}.`)
    .update(body)
    .digest('base64')
  return {
    'content-type': 'application/json',
    'x-service-signature': createHmac('sha256', keys.service).update(body).digest('base64'),
    'x-service-event': event,
    'x-service-delivery': stamp.deliveryId,
    'x-service-attempt': String(stamp.attempt),
    'x-service-timestamp': at,
    'webhook-id': stamp.deliveryId,
    'webhook-timestamp': at,
    'webhook-signature': `v1,${standard}`,
  }
}

/**
 * What a receiver calls before it acts on a delivery.
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

/** The three headers of Standard Webhooks, by their names in lower case, as Node has them. */
export type StandardWebhookHeaders = {
  readonly [name: string]: string | readonly string[] | undefined
}

export type StandardWebhookCheck = {
  /** The receiver's clock. */
  nowSeconds: number
  /** How far the signed moment may be from it, either way; an old one is a recording. */
  toleranceSeconds?: number
}

/**
 * What a receiver may call instead: the Standard Webhooks signature also covers the delivery id and
 * the moment of the attempt. As the specification has it, one genuine signature of the several that
 * the header may list is enough, and those of other versions than `v1` are passed over.
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
  // One spelling of an id and a moment: a dot in the id would let one pass for another's body.
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

/** Signatures of one header that are looked at: a rotation lists two. */
const signaturesMax = 16
