/**
 * The cost and content of a rejection: every submission that cannot be verified costs the same
 * number of HMACs over its body and gets the same answer, including one signed with a retired
 * secret. Without a lease the edge verifies nothing.
 */
import type { KeyObject } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { signBody, verifySignature } from '#shared/core/telemetry/signature.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import { decideSubmission } from '../../../services/ingest/decide-submission.ts'
import { refusals } from '../../../services/ingest/refusals.ts'
import {
  keyOf,
  makeEdge,
  makeEdgeTenant,
  makeSubmission,
} from '../../support/tenants/edge-tenant.ts'

const [present, retired, decoy, strange] = [keyOf('p'), keyOf('r'), keyOf('d'), keyOf('s')]

const acme = makeEdgeTenant({ retired: { key: retired, last4: 'rrrr' } })

type Edge = { synced?: boolean; leaseValid?: () => boolean }

function decide(
  tenant: Tenant | undefined,
  signature: string,
  body: string,
  { synced = true, leaseValid = () => true }: Edge = {},
) {
  const keys: (KeyObject | string)[] = []
  const edge = makeEdge(tenant, {
    leaseValid,
    keysKnown: () => synced,
    verify: (bytes, header, key) => {
      keys.push(key)
      expect(bytes).toHaveLength(body.length)
      return verifySignature(bytes, header, key)
    },
  })
  const decision = decideSubmission(Buffer.from(body), { signature }, edge)
  return { decision, keys }
}

const body = makeSubmission()
const unknownBody = body.replace('acme', 'nobo')
const suspended: Tenant = { ...acme, status: 'suspended' }
const signed = (key: KeyObject, of = body) => signBody(of, key)

describe('a valid submission', () => {
  it('costs one HMAC, with and without a retired secret', () => {
    for (const tenant of [acme, { ...acme, retired: null }]) {
      const { decision, keys } = decide(tenant, signed(present), body)
      expect(decision.kind).toBe('accepted')
      expect(keys).toEqual([present])
    }
  })
})

describe('a submission that cannot be verified', () => {
  const cases: [string, Tenant | undefined, string, string][] = [
    ['a wrong signature', acme, signed(strange), body],
    ['a malformed signature', acme, 'AAAA', body],
    ['a wrong signature, never rotated', { ...acme, retired: null }, signed(strange), body],
    ['an unknown tenant', acme, signed(present, unknownBody), unknownBody],
    ['the decoy’s signature', { ...acme, retired: null }, signed(decoy), body],
    ['an unknown tenant, the decoy’s', acme, signed(decoy, unknownBody), unknownBody],
    ['a suspended tenant', suspended, signed(present), body],
    ['a suspended tenant, wrongly signed', suspended, signed(strange), body],
    ['a tenant between two secrets', { ...acme, key: null }, signed(strange), body],
    ['no tenant at all', acme, signed(present, '{"a":1}'), '{"a":1}'],
  ]
  it.each(cases)(
    'with %s costs two HMACs and gets the same answer as all others',
    (_, tenant, header, of) => {
      const { decision, keys } = decide(tenant, header, of)
      expect(decision).toBe(refusals.signatureInvalid)
      expect(keys).toHaveLength(2)
    },
  )

  it.each([
    ['active', acme],
    ['suspended', suspended],
    ['between two secrets', { ...acme, key: null }],
  ] as const)(
    'with the retired secret of a tenant that is %s costs and gets the same',
    (_, tenant) => {
      const { decision, keys } = decide(tenant, signed(retired), body)
      expect(keys).toHaveLength(2)
      expect(decision).toEqual({
        ...refusals.signatureInvalid,
        retired: { tenantId: 'acme', last4: 'rrrr' },
      })
      expect((decision as { problem: unknown }).problem).toBe(refusals.signatureInvalid.problem)
    },
  )

  it('is rejected with 503 until the edge has read all tenants', () => {
    for (const [, tenant, header, of] of cases) {
      expect(decide(tenant, header, of, { synced: false }).decision).toBe(refusals.notSynced)
    }
    expect(decide(acme, signed(retired), body, { synced: false }).decision).toBe(refusals.notSynced)
    expect(decide(acme, signed(present), body, { synced: false }).decision.kind).toBe('accepted')
  })
})

describe('a tenant whose telemetry stream the edge does not write to', () => {
  const elsewhere: Tenant = { ...acme, fault: 'stream_unknown', policy: null }

  it('gets a 503 for a valid signature, and the same answer as all others for any other', () => {
    const valid = decide(elsewhere, signed(present), body).decision
    expect(valid).toMatchObject({ reason: 'tenant_unusable' })
    for (const header of [signed(strange), signed(decoy), 'AAAA']) {
      const { decision, keys } = decide({ ...elsewhere, retired: null }, header, body)
      expect(decision).toBe(refusals.signatureInvalid)
      expect(keys).toHaveLength(2)
    }
  })
})

describe('an edge without a lease', () => {
  it('rejects every signature with 503, since a wrong one may be that of a new secret', () => {
    for (const header of [signed(present), signed(retired), signed(strange)]) {
      const { decision, keys } = decide(acme, header, body, { leaseValid: () => false })
      expect(decision).toBe(refusals.lease)
      expect(keys).toEqual([])
    }
  })

  it('accepts nothing when the lease ends while it verifies', () => {
    let checks = 0
    const { decision, keys } = decide(acme, signed(present), body, {
      leaseValid: () => checks++ === 0,
    })
    expect(keys).toEqual([present])
    expect(decision).toEqual({ ...refusals.lease, verifiedTenantId: 'acme' })
  })
})
