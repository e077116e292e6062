/**
 * `verifyWebhook`, of both entries alike, returns the alert of a genuine delivery in both signature forms, and throws a
 * typed error for every forged, old or changed one.
 */
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { verifyWebhook } from '../../../shared/client/client.ts'
import { WebhookVerificationError } from '../../../shared/client/errors.ts'
import * as webClient from '../../../shared/client/webcrypto.ts'
import type { WebhookHeaders } from '../../../shared/client/webhook-check.ts'
import { signDelivery } from '../../../shared/core/deliveries/webhook-signing.ts'
import vectors from '../../vectors/webhooks.json' with { type: 'json' }

const { secret, body } = vectors
const nowMs = vectors.timestamp_seconds * 1000
const genuine: Record<string, string> = vectors.headers
const { 'x-service-signature': service, ...standardOnly } = genuine
const serviceOnly = { 'x-service-signature': service!, 'x-service-delivery': 'dlv_1' }

type VerifyOptions = Parameters<typeof verifyWebhook>[3]

/** What both entries say of a delivery: the error that they throw, or the delivery. */
async function verifyBoth(...args: Parameters<typeof verifyWebhook>) {
  const verifiers = [verifyWebhook, webClient.verifyWebhook]
  const [byNode, byWeb] = await Promise.all(
    verifiers.map(async (verify) => {
      try {
        return await verify(...args)
      } catch (error) {
        expect(error).toBeInstanceOf(WebhookVerificationError)
        expect((error as Error).message).not.toContain(secret)
        return error as WebhookVerificationError
      }
    }),
  )
  expect(byWeb).toEqual(byNode)
  return byNode!
}

async function faultOf(headers: WebhookHeaders, more: VerifyOptions = {}, raw = body) {
  const result = await verifyBoth(raw, headers, secret, { nowMs, ...more })
  return result instanceof Error ? result.fault : null
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
  ])('gives its alert, id and signed time; headers %s', async (_, headers) => {
    expect(await verifyBoth(body, headers, secret, { nowMs })).toEqual({
      event: 'risk.alert',
      alert: JSON.parse(body),
      deliveryId: genuine['webhook-id'],
      signedAtMs: nowMs,
    })
  })

  it('may have only X-Service-Signature, unless a signed time is required', async () => {
    const bytes = Buffer.from(body)
    expect(await verifyBoth(bytes, serviceOnly, secret, { nowMs })).toMatchObject({
      deliveryId: 'dlv_1',
      signedAtMs: null,
    })
    expect(await faultOf(serviceOnly, { requireTimestamp: true })).toBe('unstamped')
    expect(await faultOf(standardOnly, { requireTimestamp: true })).toBe(null)
  })

  it('may list several signatures, as during a rotation', async () => {
    const listed = `v1,${'A'.repeat(43)}= ${genuine['webhook-signature']}`
    expect(await faultOf({ ...genuine, 'webhook-signature': listed })).toBe(null)
  })
})

const otherSecret = `${secret.slice(0, -4)}AAA=`

describe('several secrets', () => {
  it.each([
    ['the new one first', [secret, otherSecret]],
    ['the old one first', [otherSecret, secret]],
    ['alone in a list', [secret]],
    ['among four', [otherSecret, otherSecret, secret, otherSecret]],
  ])('find the one that signed: %s', async (_, secrets) => {
    for (const headers of [genuine, serviceOnly, standardOnly]) {
      const { alert } = verifyWebhook(body, headers, secrets, { nowMs })
      expect(alert).toEqual(JSON.parse(body))
      expect(await verifyBoth(body, headers, secrets, { nowMs })).not.toBeInstanceOf(Error)
    }
  })

  it('without the right one refuse the delivery', async () => {
    const result = await verifyBoth(body, genuine, [otherSecret, otherSecret], { nowMs })
    expect(result).toMatchObject({ fault: 'forged' })
  })

  it('do not make a delivery genuine that each of them signed in part', async () => {
    const stamp = {
      deliveryId: genuine['webhook-id']!,
      attempt: 1,
      timestampSeconds: vectors.timestamp_seconds,
    }
    const byOther = signDelivery(Buffer.from(body), otherSecret, stamp)
    const mixed = { ...genuine, 'x-service-signature': byOther['x-service-signature'] }
    const result = await verifyBoth(body, mixed, [secret, otherSecret], { nowMs })
    expect(result).toMatchObject({ fault: 'forged' })
  })
})

describe('a raw body', () => {
  it('may be text, bytes of a larger buffer, or an ArrayBuffer', async () => {
    const padded = Buffer.from(`--${body}--`)
    const part = padded.subarray(2, -2)
    for (const raw of [body, part, Uint8Array.from(part), Uint8Array.from(part).buffer]) {
      expect(await verifyBoth(raw, genuine, secret, { nowMs })).not.toBeInstanceOf(Error)
    }
  })
})

describe('a delivery that is not genuine', () => {
  it.each<[string, WebhookHeaders]>(
    vectors.forged.map(({ name, headers }) => [name, headers as WebhookHeaders]),
  )('is refused: %s', async (_, headers) => {
    expect(await faultOf(headers)).toMatch(/^(forged|unsigned)$/)
  })

  it.each(vectors.changed_bodies)(
    'is rejected with other bytes: $name',
    async ({ body: changed }) => {
      expect(await faultOf(genuine, {}, changed)).toBe('forged')
      expect(await faultOf(serviceOnly, {}, changed)).toBe('forged')
      expect(await faultOf(standardOnly, {}, changed)).toBe('forged')
    },
  )

  it('is rejected when one of two signatures is wrong', async () => {
    const wrong = `${'A'.repeat(42)}8=`
    expect(await faultOf({ ...genuine, 'x-service-signature': wrong })).toBe('forged')
    expect(await faultOf({ ...genuine, 'webhook-signature': `v1,${wrong}` })).toBe('forged')
  })

  it('is rejected with one other bit in any byte of its signature', async () => {
    const right = Buffer.from(service!, 'base64')
    for (let index = 0; index < right.length; index++) {
      const wrong = Buffer.from(right)
      wrong[index]! ^= 1
      const headers = { 'x-service-signature': wrong.toString('base64') }
      expect(await faultOf(headers), `byte ${index}`).toBe('forged')
    }
  })

  it('is rejected outside the tolerance, on both sides', async () => {
    expect(await faultOf(genuine, { nowMs: nowMs + 300_000 })).toBe(null)
    expect(await faultOf(genuine, { nowMs: nowMs + 301_000 })).toBe('stale')
    expect(await faultOf(genuine, { nowMs: nowMs - 301_000 })).toBe('stale')
    expect(await faultOf(genuine, { nowMs: nowMs + 11_000, toleranceSeconds: 10 })).toBe('stale')
    expect(await faultOf(genuine, { nowMs: nowMs + 1e9, toleranceSeconds: Infinity })).toBe(null)
  })

  it('is rejected with a changed id or time', async () => {
    expect(await faultOf({ ...genuine, 'webhook-id': 'dlv_other' })).toBe('forged')
    const later = String(vectors.timestamp_seconds + 1)
    expect(await faultOf({ ...genuine, 'webhook-timestamp': later })).toBe('forged')
    expect(await faultOf({ ...genuine, 'webhook-timestamp': 'now' })).toBe('forged')
  })

  it('is rejected with another secret', async () => {
    const result = await verifyBoth(body, genuine, otherSecret, { nowMs })
    expect(result).toMatchObject({ fault: 'forged' })
  })
})

it('a signed body that is not an object is invalid', async () => {
  for (const raw of ['', 'null', '[]', '{']) {
    const stamp = { deliveryId: 'dlv_1', attempt: 1, timestampSeconds: nowMs / 1000 }
    expect(await faultOf(signDelivery(Buffer.from(raw), secret, stamp), {}, raw)).toBe('unreadable')
  }
})
