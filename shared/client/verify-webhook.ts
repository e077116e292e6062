/**
 * Verifies webhook deliveries over the raw body, in constant time: `X-Service-Signature` of the
 * public interface, and the Standard Webhooks headers, which also cover the id and the time.
 */
import { webhookToleranceSeconds } from '#shared/core/base/limits/client.ts'
import { verifyDelivery, verifyStandardWebhook } from '#shared/core/deliveries/webhook-signing.ts'
import { WebhookVerificationError } from './errors.ts'
import type { Alert } from './telemetry.ts'

/** Headers as Node, Fetch or a framework has them; names in any case. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>

export type VerifyOptions = {
  /** How far the signed time may be from now, in seconds; 300 unless given. */
  toleranceSeconds?: number
  /**
   * Whether a delivery without the Standard Webhooks signature is refused. Only that one is signed
   * with its time, so only it ends replays. Off unless given.
   */
  requireTimestamp?: boolean
  /** The receiver's clock in ms since 1970; the system's unless given. */
  nowMs?: number
}

/** A genuine delivery. */
export type WebhookDelivery = {
  /** `risk.alert`, or `webhook.test` for a test event. */
  event: string
  alert: Alert
  /** The same on every retry. Store it under a unique key, since deliveries repeat. */
  deliveryId: string | null
  /** The signed time of this attempt in ms; null when only `X-Service-Signature` was there. */
  signedAtMs: number | null
}

/**
 * Verifies a delivery and returns its alert. Every signature that is there must be genuine.
 * @param rawBody the body exactly as received, before any parser
 * @param secret the tenant's webhook secret, `whsec_...`
 * @throws WebhookVerificationError when the delivery must not be acted on
 */
export function verifyWebhook(
  rawBody: Uint8Array | string,
  headers: WebhookHeaders,
  secret: string,
  options: VerifyOptions = {},
): WebhookDelivery {
  const header = toReader(headers)
  const service = header('x-service-signature')
  const standard = header('webhook-signature')
  if (service === undefined && standard === undefined) {
    throw new WebhookVerificationError('unsigned')
  }
  if (standard === undefined && options.requireTimestamp === true) {
    throw new WebhookVerificationError('unstamped')
  }
  if (service !== undefined && !verifyDelivery(rawBody, service, secret)) {
    throw new WebhookVerificationError('forged')
  }
  const signedAtMs = standard === undefined ? null : verifyStamp(rawBody, header, secret, options)
  return {
    event: header('x-service-event') ?? 'risk.alert',
    alert: parseAlert(rawBody),
    deliveryId: header(standard === undefined ? 'x-service-delivery' : 'webhook-id') ?? null,
    signedAtMs,
  }
}

type ReadHeader = (name: string) => string | undefined

function toReader(headers: WebhookHeaders): ReadHeader {
  const { get } = headers
  if (typeof get === 'function') return (name) => get.call(headers, name) ?? undefined
  const byName = new Map<string, string>()
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string') byName.set(name.toLowerCase(), value)
    else if (Array.isArray(value)) byName.set(name.toLowerCase(), value.join(', '))
  }
  return (name) => byName.get(name)
}

/** @returns the signed time in ms */
function verifyStamp(
  rawBody: Uint8Array | string,
  header: ReadHeader,
  secret: string,
  { nowMs = Date.now(), toleranceSeconds = webhookToleranceSeconds }: VerifyOptions,
): number {
  const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature']
  const headers = Object.fromEntries(names.map((name) => [name, header(name)]))
  const atSeconds = Number(header('webhook-timestamp'))
  // The signature is checked by the signed clock first, to tell a forged delivery from an old one.
  const signed = verifyStandardWebhook(rawBody, headers, secret, { nowSeconds: atSeconds })
  if (!signed) throw new WebhookVerificationError('forged')
  if (Math.abs(nowMs / 1000 - atSeconds) > toleranceSeconds) {
    throw new WebhookVerificationError('stale')
  }
  return atSeconds * 1000
}

function parseAlert(rawBody: Uint8Array | string): Alert {
  try {
    const text = typeof rawBody === 'string' ? rawBody : new TextDecoder().decode(rawBody)
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Alert
  } catch {
    // Below.
  }
  throw new WebhookVerificationError('unreadable')
}
