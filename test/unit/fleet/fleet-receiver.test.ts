/**
 * The fleet's webhook receiver accepts genuine deliveries, refuses and counts all others, and
 * distinguishes repeats from new deliveries.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type DeliveryReceiver,
  type Reply,
  receiveDeliveries,
} from '../../../deploy/fleet/send/deliveries.ts'
import { signDelivery } from '../../../shared/core/deliveries/webhook-signing.ts'

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const body = JSON.stringify({ alert_id: 'alr_1', seq: 1 })

let receiver: DeliveryReceiver
let reply: Reply

beforeEach(async () => {
  reply = 'accept'
  receiver = await receiveDeliveries({ reply: () => reply, sinceStartMs: () => 42 })
  receiver.trust('hook', secret)
})
afterEach(() => receiver.close())

async function deliver(more: {
  headers?: Record<string, string>
  body?: string
  attempt?: number
  secret?: string
  atMs?: number
  id?: string
  path?: string
}): Promise<number> {
  const url = receiver.urlOf(more.path ?? 'hook')
  const bytes = Buffer.from(more.body ?? body)
  const stamp = {
    deliveryId: more.id ?? 'dlv_1',
    attempt: more.attempt ?? 1,
    timestampSeconds: Math.floor((more.atMs ?? Date.now()) / 1000),
  }
  const headers = { ...signDelivery(bytes, more.secret ?? secret, stamp), ...more.headers }
  return (await fetch(url, { method: 'POST', headers, body: bytes })).status
}

describe('a genuine delivery', () => {
  it('gets a 200 and is kept', async () => {
    expect(await deliver({})).toBe(200)
    const { deliveries, verified, refused } = receiver.received
    expect({ verified, refused }).toEqual({ verified: 1, refused: {} })
    expect(deliveries.get('dlv_1')).toMatchObject({
      alertId: 'alr_1',
      body,
      arrivals: 1,
      firstMs: 42,
    })
  })

  it('counts once when it is repeated, and a change of its bytes is reported', async () => {
    await deliver({})
    await deliver({ attempt: 2 })
    expect(receiver.received.deliveries.get('dlv_1')).toMatchObject({ arrivals: 2, changed: false })
    await deliver({ attempt: 3, body: body.replace('1}', '2}') })
    expect(receiver.received.deliveries.get('dlv_1')).toMatchObject({ arrivals: 3, changed: true })
    expect(receiver.received.deliveries.size).toBe(1)
  })
})

describe('a delivery that is not genuine', () => {
  const cases: [string, Parameters<typeof deliver>[0]][] = [
    ['signature', { secret: `whsec_${Buffer.alloc(32, 8).toString('base64')}` }],
    ['signature', { headers: { 'x-service-signature': '' } }],
    ['secret', { path: 'of-another-tenant' }],
    ['standard_signature', { headers: { 'webhook-signature': 'v1,AAAA' } }],
    ['standard_signature', { atMs: Date.now() - 6 * 60_000 }],
    ['timestamp', { headers: { 'webhook-timestamp': '1' } }],
    ['delivery_id', { headers: { 'webhook-id': 'dlv_2' } }],
    ['attempt', { headers: { 'x-service-attempt': '0' } }],
    ['event', { headers: { 'x-service-event': 'other' } }],
    ['content_type', { headers: { 'content-type': 'text/plain' } }],
  ]

  it.each(cases)('is refused and counted by its fault: %s %j', async (fault, more) => {
    expect(await deliver(more)).toBe(401)
    expect(receiver.received).toMatchObject({ requests: 1, verified: 0, refused: { [fault]: 1 } })
    expect(receiver.received.deliveries.size).toBe(0)
  })
})

describe('deliberate failures', () => {
  it('answer 500 or nothing, and count with their delivery', async () => {
    reply = 'refuse'
    expect(await deliver({})).toBe(500)
    reply = 'cut'
    await expect(deliver({ attempt: 2 })).rejects.toThrow()
    reply = 'accept'
    expect(await deliver({ attempt: 3 })).toBe(200)
    expect(receiver.received.faults).toBe(2)
    const counts = { arrivals: 3, faults: 2, accepted: 1 }
    expect(receiver.received.deliveries.get('dlv_1')).toMatchObject(counts)
  })
})
