// Signed deliveries: vectors computed once with openssl, the independent npm library for receivers,
// and our verifier, which accepts one spelling of one signature.
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import {
  signDelivery,
  standardWebhooksKey,
  verifyDelivery,
} from '#shared/core/deliveries/webhook-signing.ts'
import { verifyWebhook } from '../../../shared/client/client.ts'

const secret = `whsec_${Buffer.from(Array.from({ length: 32 }, (_, i) => i)).toString('base64')}`
const body = Buffer.from('{"alert_id":"alr_1","note":"grün"}')
const stamp = { deliveryId: 'dlv_1', attempt: 3, timestampSeconds: 1_767_225_600 }

test('the headers of a delivery are exactly these', () => {
  // printf '%s' BODY | openssl dgst -sha256 -hmac SECRET -binary | base64, and for the second the
  // text `dlv_1.1767225600.BODY` with -mac HMAC -macopt hexkey:000102...1f.
  expect(signDelivery(body, secret, stamp)).toEqual({
    'content-type': 'application/json',
    'x-service-signature': 'o98aX2Dr6+59s+gJNm8EVpdUpswNxdMNqiLiegQCSOQ=',
    'x-service-event': 'risk.alert',
    'x-service-delivery': 'dlv_1',
    'x-service-attempt': '3',
    'x-service-timestamp': '1767225600',
    'webhook-id': 'dlv_1',
    'webhook-timestamp': '1767225600',
    'webhook-signature': 'v1,OQ/pVUbubtg+GgomBrl07+tr6dsa2Ths1gQtnF3OZzI=',
  })
})

test('the standard key is the 32 bytes behind whsec_', () => {
  expect([...standardWebhooksKey(secret)]).toEqual(Array.from({ length: 32 }, (_, i) => i))
})

test('any body verifies with the Standard Webhooks library and with our own verifier', () => {
  const nowSeconds = Math.floor(Date.now() / 1_000)
  fc.assert(
    fc.property(fc.json(), fc.uint8Array({ minLength: 32, maxLength: 32 }), (text, key) => {
      const itsSecret = `whsec_${Buffer.from(key).toString('base64')}`
      const bytes = Buffer.from(text)
      const headers = signDelivery(bytes, itsSecret, { ...stamp, timestampSeconds: nowSeconds })
      expect(new Webhook(itsSecret).verify(text, headers)).toEqual(JSON.parse(text))
      expect(verifyDelivery(bytes, headers['x-service-signature'], itsSecret)).toBe(true)
      expect(verifyDelivery(text, headers['x-service-signature'], itsSecret)).toBe(true)
    }),
  )
})

test('the signature of the interface depends on the body and the secret alone', () => {
  const first = signDelivery(body, secret, stamp)
  const later = signDelivery(body, secret, { ...stamp, attempt: 4, timestampSeconds: 1 })
  expect(later['x-service-signature']).toBe(first['x-service-signature'])
  expect(later['webhook-signature']).not.toBe(first['webhook-signature'])
  expect(later['webhook-id']).toBe(first['webhook-id'])
})

test('one changed bit in body, signature or secret is refused', () => {
  const genuine = signDelivery(body, secret, stamp)['x-service-signature']!
  for (let bit = 0; bit < body.length * 8; bit++) {
    const changed = Buffer.from(body)
    changed[bit >> 3]! ^= 1 << (bit & 7)
    expect(verifyDelivery(changed, genuine, secret)).toBe(false)
  }
  for (let bit = 0; bit < 256; bit++) {
    const changed = Buffer.from(genuine, 'base64')
    changed[bit >> 3]! ^= 1 << (bit & 7)
    expect(verifyDelivery(body, changed.toString('base64'), secret)).toBe(false)
  }
  expect(verifyDelivery(body, genuine, `${secret}x`)).toBe(false)
})

test('other spellings of a genuine signature, and its absence, are refused', () => {
  const genuine = signDelivery(body, secret, stamp)['x-service-signature']!
  const spellings = [
    genuine.slice(0, -1),
    `${genuine}=`,
    `${genuine} `,
    ` ${genuine}`,
    `${genuine}x`,
    `${genuine.slice(0, 20)}\n${genuine.slice(20)}`,
    genuine.replaceAll('+', '-').replaceAll('/', '_').replace('=', ''),
    `${genuine}, ${genuine}`,
    '',
    undefined,
  ]
  for (const text of spellings) expect(verifyDelivery(body, text, secret)).toBe(false)
})

const nowSeconds = stamp.timestampSeconds
const genuineHeaders = signDelivery(body, secret, stamp)

type Check = { nowSeconds?: number; toleranceSeconds?: number; usedSecret?: string }

/** Whether the client takes the Standard Webhooks signature of a delivery for genuine. */
function isGenuine(
  headers: Record<string, string | string[] | undefined>,
  bytes: Uint8Array | string = body,
  { nowSeconds: at = nowSeconds, usedSecret = secret, ...tolerance }: Check = {},
): boolean {
  const standard = { ...headers, 'x-service-signature': undefined }
  try {
    verifyWebhook(bytes, standard, usedSecret, { nowMs: at * 1000, ...tolerance })
    return true
  } catch (error) {
    expect(error).toMatchObject({ fault: expect.stringMatching(/^(forged|stale|unsigned)$/) })
    return false
  }
}
const otherSecret = `${secret.slice(0, -4)}AAA=`
const otherSignature = signDelivery(body, otherSecret, stamp)['webhook-signature']

test('one genuine signature among several is enough', () => {
  const genuine = genuineHeaders['webhook-signature']!
  for (const [listed, expected] of [
    ...([
      [`${otherSignature} ${genuine}`, true],
      [`${genuine} ${otherSignature}`, true],
      [`v1a,abc  v2,${genuine.slice(3)} ${genuine}`, true],
      [`${otherSignature} v2,${genuine.slice(3)}`, false],
      [`${Array(16).fill(otherSignature).join(' ')} ${genuine}`, false],
      [otherSignature, false],
      [genuine.slice(3), false],
      [`v1, ${genuine.slice(3)}`, false],
      [genuine.slice(0, -1), false],
      [genuine.replace('v1,', 'V1,'), false],
      [`${genuine},${genuine}`, false],
      ['', false],
    ] as const),
  ]) {
    const headers = { ...genuineHeaders, 'webhook-signature': listed }
    expect(isGenuine(headers), `${listed}`).toBe(expected)
  }
})

test('a changed bit of body, id, moment or secret, or a missing header, is refused', () => {
  expect(isGenuine(genuineHeaders)).toBe(true)
  for (let bit = 0; bit < body.length * 8; bit++) {
    const changed = Buffer.from(body)
    changed[bit >> 3]! ^= 1 << (bit & 7)
    expect(isGenuine(genuineHeaders, changed)).toBe(false)
  }
  for (const changed of [
    { 'webhook-id': 'dlv_2' },
    { 'webhook-id': '' },
    { 'webhook-id': `dlv_1.${nowSeconds}` },
    { 'webhook-id': ['dlv_1', 'dlv_1'] },
    { 'webhook-id': undefined },
    { 'webhook-timestamp': String(nowSeconds + 1) },
    { 'webhook-timestamp': `${nowSeconds}.0` },
    { 'webhook-timestamp': ` ${nowSeconds}` },
    { 'webhook-timestamp': 'Infinity' },
    { 'webhook-timestamp': undefined },
    { 'webhook-signature': undefined },
  ]) {
    expect(isGenuine({ ...genuineHeaders, ...changed }), JSON.stringify(changed)).toBe(false)
  }
  expect(isGenuine(genuineHeaders, body, { usedSecret: otherSecret })).toBe(false)
  expect(isGenuine({})).toBe(false)
})

test('the independent library and our verifier agree on any listing of signatures', () => {
  const currentSeconds = Math.floor(Date.now() / 1_000)
  const genuine = signDelivery(body, secret, { ...stamp, timestampSeconds: currentSeconds })
  const entry = fc.constantFrom(
    genuine['webhook-signature']!,
    otherSignature!,
    'v1,',
    'v2,abc',
    'nonsense',
  )
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 6 }), (entries) => {
      const headers = { ...genuine, 'webhook-signature': entries.join(' ') }
      let theirs = true
      try {
        new Webhook(secret).verify(body.toString(), headers)
      } catch {
        theirs = false
      }
      const ours = isGenuine(headers, body, { nowSeconds: currentSeconds })
      expect(ours).toBe(theirs)
    }),
  )
})
