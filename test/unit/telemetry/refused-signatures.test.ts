// What a 401 costs and says: the same number of HMACs over the same body for everything that cannot
// be verified, also for what a retired secret signed; one for what can be.
import { createSecretKey, type KeyObject } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { signBody, verifySignature } from '#shared/core/telemetry/signature.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import { decideSubmission, refusals } from '../../../services/ingest/decide-submission.ts'

const keyOf = (letter: string) => createSecretKey(Buffer.from(letter.repeat(43)))
const [present, retired, decoy, strange] = [keyOf('p'), keyOf('r'), keyOf('d'), keyOf('s')]

const acme: Tenant = {
  tenantId: 'acme',
  environment: 'live',
  status: 'active',
  epoch: 1,
  key: present,
  retired: { key: retired, last4: 'rrrr' },
  policyVersion: 1,
  policyHash: 'a'.repeat(32),
  policy: { hash: '', thresholds: { review: 40, block: 75 }, score: () => noScore },
  limiter: null,
  byteLimiter: { rate: { perSecond: 1e9, burst: 1e9 }, bucket: { tokens: 1e9, atMs: 0 } },
  undecidedShare: 0.25,
  fault: null,
}
const noScore = { score: 0, action: 'ALLOW' as const, reasons: [] }

function decide(tenant: Tenant | undefined, signature: string, body: string, whole = true) {
  const keys: KeyObject[] = []
  const decision = decideSubmission(Buffer.from(body), signature, {
    findTenant: (tenantId) => (tenantId === 'acme' ? tenant : undefined),
    leaseValid: () => true,
    synced: () => whole,
    mayWait: () => true,
    verify: (bytes, header, key) => {
      keys.push(key)
      expect(bytes).toHaveLength(body.length)
      return verifySignature(bytes, header, key)
    },
    decoyKey: decoy,
    nowMs: () => 0,
    wallMs: () => 0,
  })
  return { decision, keys }
}

const body = JSON.stringify({
  tenant_id: 'acme',
  device_id: 'd',
  session_id: 's',
  sdk_meta: { sdk_version: '4.2.0', platform: 'ios', batch_type: 'start' },
  scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
  signals: { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} },
})
const unknownBody = body.replace('acme', 'nobo')
const suspended: Tenant = { ...acme, status: 'suspended' }
const signed = (key: KeyObject, of = body) => signBody(of, key)

describe('what is verified', () => {
  it('costs one HMAC, whether or not there is a retired secret', () => {
    for (const tenant of [acme, { ...acme, retired: null }]) {
      const { decision, keys } = decide(tenant, signed(present), body)
      expect(decision.kind).toBe('accepted')
      expect(keys).toEqual([present])
    }
  })
})

describe('what is not', () => {
  const cases: [string, Tenant | undefined, string, string][] = [
    ['a wrong signature', acme, signed(strange), body],
    ['a malformed one', acme, 'AAAA', body],
    ['a wrong one, never rotated', { ...acme, retired: null }, signed(strange), body],
    ['an unknown tenant', acme, signed(present, unknownBody), unknownBody],
    ['the decoy’s signature', { ...acme, retired: null }, signed(decoy), body],
    ['an unknown tenant, the decoy’s', acme, signed(decoy, unknownBody), unknownBody],
    ['a suspended tenant', suspended, signed(present), body],
    ['a suspended tenant, wrongly signed', suspended, signed(strange), body],
    ['a tenant between two secrets', { ...acme, key: null }, signed(strange), body],
    ['no tenant at all', acme, signed(present, '{"a":1}'), '{"a":1}'],
  ]
  it.each(cases)('%s costs two HMACs and is refused as all others are', (_, tenant, header, of) => {
    const { decision, keys } = decide(tenant, header, of)
    expect(decision).toBe(refusals.signatureInvalid)
    expect(keys).toHaveLength(2)
  })

  it.each([
    ['active', acme],
    ['suspended', suspended],
    ['between two secrets', { ...acme, key: null }],
  ] as const)('the retired secret of a tenant that is %s costs and says the same', (_, tenant) => {
    const { decision, keys } = decide(tenant, signed(retired), body)
    expect(keys).toHaveLength(2)
    expect(decision).toEqual({
      ...refusals.signatureInvalid,
      retired: { tenantId: 'acme', last4: 'rrrr' },
    })
    expect((decision as { problem: unknown }).problem).toBe(refusals.signatureInvalid.problem)
  })

  it('is never called wrong while tenants are missing, known as its own may be', () => {
    for (const [, tenant, header, of] of cases) {
      expect(decide(tenant, header, of, false).decision).toBe(refusals.notSynced)
    }
    expect(decide(acme, signed(retired), body, false).decision).toBe(refusals.notSynced)
    expect(decide(acme, signed(present), body, false).decision.kind).toBe('accepted')
  })
})
