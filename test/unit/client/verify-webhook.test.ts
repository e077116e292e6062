/**
 * `verifyWebhook` returns the alert of a genuine delivery in both signature forms, and throws a
 * typed error for every forged, old or changed one.
 */
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { verifyWebhook } from '../../../shared/client/client.ts'
import { WebhookVerificationError } from '../../../shared/client/errors.ts'
import type { WebhookHeaders } from '../../../shared/client/webhook-check.ts'
import { signDelivery } from '../../../shared/core/deliveries/webhook-signing.ts'
import vectors from '../../vectors/webhooks.json' with { type: 'json' }

const { secret, body } = vectors
const nowMs = vectors.timestamp_seconds * 1000
const genuine: Record<string, string> = vectors.headers
const { 'x-service-signature': service, ...standardOnly } = genuine
const serviceOnly = { 'x-service-signature': service!, 'x-service-delivery': 'dlv_1' }

function faultOf(
  headers: WebhookHeaders,
  more: Parameters<typeof verifyWebhook>[3] = {},
  raw = body,
) {
  try {
    verifyWebhook(raw, headers, secret, { nowMs, ...more })
  } catch (error) {
    expect(error).toBeInstanceOf(WebhookVerificationError)
    expect((error as Error).message).not.toContain(secret)
    return (error as WebhookVerificationError).fault
  }
  return null
}

describe('the vectors', () => {
  it('are deliveries as the service sends them', () => {
    const stamp = {
      deliveryId: genuine['webhook-id']!,
      attempt: 1,
      timestampSeconds: vectors.timestamp_seconds,
    }
    expect(signDelivery(Buffer.from(body), secret, stamp)).toEqual(genuine)
  })

  it('verify with the Standard Webhooks library', () => {
    const at = String(Math.floor(Date.now() / 1000))
    const stamp = { deliveryId: 'dlv_1', attempt: 1, timestampSeconds: Number(at) }
    const headers = signDelivery(Buffer.from(body), secret, stamp)
    expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body))
    expect(verifyWebhook(body, headers, secret).alert).toEqual(JSON.parse(body))
  })
})

describe('a genuine delivery', () => {
  it.each<[string, WebhookHeaders]>([
    ['as Node has them', genuine],
    ['as Fetch has them', new Headers(genuine)],
    [
      'in capitals',
      Object.fromEntries(Object.entries(genuine).map(([k, v]) => [k.toUpperCase(), v])),
    ],
    ['as lists', Object.fromEntries(Object.entries(genuine).map(([k, v]) => [k, [v]]))],
    ['without X-Service-Signature', standardOnly],
  ])('gives its alert, id and signed time; headers %s', (_, headers) => {
    expect(verifyWebhook(body, headers, secret, { nowMs })).toEqual({
      event: 'risk.alert',
      alert: JSON.parse(body),
      deliveryId: genuine['webhook-id'],
      signedAtMs: nowMs,
    })
  })

  it('may have only X-Service-Signature, unless a signed time is required', () => {
    expect(verifyWebhook(Buffer.from(body), serviceOnly, secret, { nowMs })).toMatchObject({
      deliveryId: 'dlv_1',
      signedAtMs: null,
    })
    expect(faultOf(serviceOnly, { requireTimestamp: true })).toBe('unstamped')
    expect(faultOf(standardOnly, { requireTimestamp: true })).toBe(null)
  })

  it('may list several signatures, as during a rotation', () => {
    const listed = `v1,${'A'.repeat(43)}= ${genuine['webhook-signature']}`
    expect(faultOf({ ...genuine, 'webhook-signature': listed })).toBe(null)
  })
})

describe('a delivery that is not genuine', () => {
  it.each<[string, WebhookHeaders]>(
    vectors.forged.map(({ name, headers }) => [name, headers as WebhookHeaders]),
  )('is refused: %s', (_, headers) => {
    expect(faultOf(headers)).toMatch(/^(forged|unsigned)$/)
  })

  it.each(vectors.changed_bodies)('is rejected with other bytes: $name', ({ body: changed }) => {
    expect(faultOf(genuine, {}, changed)).toBe('forged')
    expect(faultOf(serviceOnly, {}, changed)).toBe('forged')
    expect(faultOf(standardOnly, {}, changed)).toBe('forged')
  })

  it('is rejected when one of two signatures is wrong', () => {
    const wrong = `${'A'.repeat(42)}8=`
    expect(faultOf({ ...genuine, 'x-service-signature': wrong })).toBe('forged')
    expect(faultOf({ ...genuine, 'webhook-signature': `v1,${wrong}` })).toBe('forged')
  })

  it('is rejected outside the tolerance, on both sides', () => {
    expect(faultOf(genuine, { nowMs: nowMs + 300_000 })).toBe(null)
    expect(faultOf(genuine, { nowMs: nowMs + 301_000 })).toBe('stale')
    expect(faultOf(genuine, { nowMs: nowMs - 301_000 })).toBe('stale')
    expect(faultOf(genuine, { nowMs: nowMs + 11_000, toleranceSeconds: 10 })).toBe('stale')
  })

  it('is rejected with a changed id or time', () => {
    expect(faultOf({ ...genuine, 'webhook-id': 'dlv_other' })).toBe('forged')
    const later = String(vectors.timestamp_seconds + 1)
    expect(faultOf({ ...genuine, 'webhook-timestamp': later })).toBe('forged')
    expect(faultOf({ ...genuine, 'webhook-timestamp': 'now' })).toBe('forged')
  })

  it('is rejected with another secret', () => {
    const call = () => verifyWebhook(body, genuine, `${secret.slice(0, -4)}AAA=`, { nowMs })
    expect(call).toThrow(WebhookVerificationError)
  })
})

it('a signed body that is not an object is invalid', () => {
  for (const raw of ['', 'null', '[]', '{']) {
    const stamp = { deliveryId: 'dlv_1', attempt: 1, timestampSeconds: nowMs / 1000 }
    expect(faultOf(signDelivery(Buffer.from(raw), secret, stamp), {}, raw)).toBe('unreadable')
  }
})
