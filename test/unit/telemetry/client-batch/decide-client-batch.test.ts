/**
 * The decision on a client's batch: its cost before the signature is verified, its quota, and each
 * event as if it was sent alone.
 */
import type { KeyObject } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { toEventId } from '#shared/core/base/ids.ts'
import { fullBucket } from '#shared/core/http/rate-limit.ts'
import { signBody, verifySignature } from '#shared/core/telemetry/signature.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import { decideClientBatch } from '../../../../services/ingest/decide-client-batch.ts'
import { type DecideDeps, decideSubmission } from '../../../../services/ingest/decide-submission.ts'
import { refusals } from '../../../../services/ingest/refusals.ts'
import { hostileBodies } from '../../../support/telemetry/hostile-bodies.ts'
import {
  keyOf,
  makeEdge,
  makeEdgeTenant,
  makeSubmission,
} from '../../../support/tenants/edge-tenant.ts'

const [present, retired, decoy] = [keyOf('p'), keyOf('r'), keyOf('d')]
const acme = makeEdgeTenant({ retired: { key: retired, last4: 'rrrr' } })

function makeCountingEdge(tenant: Tenant = acme, change: Partial<DecideDeps> = {}) {
  const counted = { keys: [] as (KeyObject | string)[], looks: 0, taken: [] as number[] }
  const deps = makeEdge(tenant, {
    findTenant: (tenantId) => {
      counted.looks++
      return tenantId === 'acme' ? tenant : undefined
    },
    shares: {
      note: () => undefined,
      take: (_, cost) => {
        counted.taken.push(cost)
        return 0
      },
    },
    verify: (bytes, header, key) => {
      counted.keys.push(key)
      return verifySignature(bytes, header, key)
    },
    ...change,
  })
  return { deps, counted }
}

const event = (n: number, change: Record<string, unknown> = {}) =>
  makeSubmission({
    device_id: `d-${n}`,
    session_id: `s-${n}`,
    ...change,
  })
const batchOf = (...events: string[]) =>
  `{"tenant_id":"acme","events":[\n ${events.join(' ,\n ')}\n]}`
const sign = (body: string, key = present) => signBody(body, key)

function decide(body: string, tenant: Tenant = acme, change: Partial<DecideDeps> = {}) {
  const { deps, counted } = makeCountingEdge(tenant, change)
  return { decided: decideClientBatch(Buffer.from(body), { signature: sign(body) }, deps), counted }
}

describe('an unsigned batch', () => {
  const bodies: [string, Buffer][] = [
    ...hostileBodies.map(([name, body]): [string, Buffer] => [name, Buffer.from(body)]),
    ['a whole batch', Buffer.from(batchOf(...Array.from({ length: 100 }, (_, n) => event(n))))],
  ]
  it.each(bodies)('costs two HMACs, one look-up and no parse: %s', (_, body) => {
    const parse = vi.spyOn(JSON, 'parse')
    for (const signature of ['A'.repeat(43).concat('='), 'x', ' ']) {
      const { deps, counted } = makeCountingEdge()
      const decision = decideClientBatch(body, { signature }, deps)
      expect(decision).toMatchObject({ kind: 'refused', reason: 'signature_invalid' })
      expect(counted.keys).toHaveLength(2)
      expect(counted.looks).toBeLessThanOrEqual(1)
      expect(counted.taken).toEqual([])
    }
    expect(parse).not.toHaveBeenCalled()
    parse.mockRestore()
  })

  it('gets the answer that a submission gets, for every cause', () => {
    const body = batchOf(event(1))
    for (const [tenant, signature] of [
      [acme, sign(body, decoy)],
      [{ ...acme, status: 'suspended' as const }, sign(body)],
      [{ ...acme, key: null }, sign(body)],
      [acme, sign(body, retired)],
    ] as const) {
      const { deps } = makeCountingEdge(tenant)
      const batch = decideClientBatch(Buffer.from(body), { signature }, deps)
      const alone = decideSubmission(Buffer.from(body), { signature }, deps)
      expect(batch).toEqual(alone)
    }
    expect(
      decideClientBatch(Buffer.from(body), { signature: undefined }, makeCountingEdge().deps),
    ).toBe(refusals.signatureMissing)
  })
})

describe('an event of a batch', () => {
  it('has the answer, the bytes and the id that it has alone', () => {
    const texts = [
      event(1),
      event(2, { extra: ' "],{ ', score: 1.5 }).replaceAll(',', ' , '),
      event(3, { userId: 'u' }),
    ]
    const { decided } = decide(batchOf(...texts))
    if (decided.kind !== 'decided') throw new Error('it was refused')
    expect(decided.events.map(({ body }) => String(body))).toEqual(texts)
    texts.forEach((text, index) => {
      const alone = decideSubmission(
        Buffer.from(text),
        { signature: sign(text) },
        makeCountingEdge().deps,
      )
      expect(decided.events[index]!.decision).toEqual(alone)
      expect(alone).toMatchObject({ kind: 'accepted', eventId: toEventId(Buffer.from(text)) })
    })
  })

  it.each([
    ['of another tenant', event(1, { tenant_id: 'globex' }), '$.tenant_id must be the tenant'],
    ['without a tenant', '{"device_id":"d"}', '$.tenant_id is missing or no slug'],
    ['with two tenants', event(1).replace(/}$/, ',"tenant_id":"globex"}'), '$.tenant_id is given'],
    ['that is a number', '7', '$ must be an object'],
    ['that is a list', '[]', '$ must be an object'],
    ['that is no JSON', '{"tenant_id":"acme",x}', '$ is not valid JSON at byte 20'],
    ['without a device', event(1, { device_id: undefined }), '$.device_id is missing'],
    [
      'that is deep',
      event(1, { x: JSON.parse('['.repeat(20) + ']'.repeat(20)) }),
      'deeper than 16',
    ],
  ])('%s is invalid alone, and the others are accepted', (_, text, fault) => {
    const { decided } = decide(batchOf(event(1), text, event(2)))
    if (decided.kind !== 'decided') throw new Error('it was refused')
    const [first, second, third] = decided.events.map(({ decision }) => decision)
    expect([first!.kind, third!.kind]).toEqual(['accepted', 'accepted'])
    if (second!.kind !== 'refused') throw new Error('it was accepted')
    const [error] = second!.problem.errors!
    expect(`${error!.path} ${error!.message}`).toContain(fault)
    expect(second!.reason).toBe('body')
  })

  it('above 64 KiB is invalid alone', () => {
    const { decided } = decide(batchOf(event(1, { x: 'x'.repeat(70_000) }), event(2)))
    if (decided.kind !== 'decided') throw new Error('it was refused')
    expect(decided.events[0]!.decision).toBe(refusals.tooLarge)
    expect(decided.events[1]!.decision.kind).toBe('accepted')
    // A small event must not keep the bytes of a large one.
    expect(decided.events[1]!.body.buffer).not.toBe(decided.events[0]!.body.buffer)
  })
})

describe('the quota of a batch', () => {
  const small = Array.from({ length: 30 }, (_, n) => event(n))

  it('is that of its events, in bytes as if each was sent alone', () => {
    const { counted } = decide(batchOf(...small))
    expect(counted.taken).toEqual([30 * 1_024])
    const large = event(1, { x: 'x'.repeat(5_000) })
    expect(decide(batchOf(large)).counted.taken[0]).toBeGreaterThanOrEqual(large.length)
    expect(decide('{"tenant_id":"acme","events":[').counted.taken[0]).toBeGreaterThan(0)
  })

  it('counts each event of a rate, and a batch beyond it is refused as a whole', () => {
    const rate = { perSecond: 40, burst: 40 }
    const limiter = { rate, bucket: fullBucket(rate, 0) }
    const tenant = { ...acme, limiter }
    expect(decide(batchOf(...small), tenant).decided.kind).toBe('decided')
    expect(limiter.bucket.tokens).toBe(10)
    expect(decide(batchOf(...small), tenant).decided).toMatchObject({
      kind: 'refused',
      reason: 'rate',
      verifiedTenantId: 'acme',
      limitedTenantId: 'acme',
    })
    expect(decide(batchOf(event(1)), tenant).decided.kind).toBe('decided')
  })
})

describe('an edge that cannot decide', () => {
  it('refuses the whole, also when its lease ends in the middle', () => {
    let checks = 0
    const { decided } = decide(batchOf(event(1), event(2), event(3)), acme, {
      leaseValid: () => checks++ < 3,
    })
    expect(decided).toEqual({ ...refusals.lease, verifiedTenantId: 'acme' })
    const unusable = { ...acme, policy: null }
    expect(decide(batchOf(event(1)), unusable).decided).toMatchObject({ reason: 'tenant_unusable' })
  })
})
