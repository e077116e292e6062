/**
 * The cost and content of a refusal beside an install token: whatever is wrong, it is two HMACs
 * over the body, no parse and one answer.
 */
import type { KeyObject } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import {
  type InstallFacts,
  makeInstallToken,
  toDeviceHash,
} from '#shared/core/installs/install-token.ts'
import { signBody, verifySignature } from '#shared/core/telemetry/signature.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import { decideSubmission } from '../../../services/ingest/decide-submission.ts'
import { refusals } from '../../../services/ingest/refusals.ts'
import { decoyRoot, installRoot } from '../../support/installs/install-roots.ts'
import {
  keyOf,
  makeEdge,
  makeEdgeTenant,
  makeSubmission,
} from '../../support/tenants/edge-tenant.ts'

const secret = 'p'.repeat(43)
const acme = makeEdgeTenant({
  retired: { key: keyOf('r'), last4: 'rrrr' },
  installRoots: [installRoot(2), installRoot(1)],
})
const nowMs = 1_790_000_000_000
const facts: InstallFacts = {
  t: 'acme',
  d: toDeviceHash('d'),
  a: null,
  p: 'none',
  v: 'none',
  l: 'none',
  r: null,
  k: null,
  s: [],
  f: {},
  iat: nowMs,
  exp: nowMs + 1,
}
const body = makeSubmission()
const unknownBody = body.replace('acme', 'nobo')
const otherDevice = body.replace('"d"', '"e"')
const mine = makeInstallToken(installRoot(1), facts)
const expired = makeInstallToken(installRoot(1), { ...facts, exp: nowMs })
const foreign = makeInstallToken(installRoot(1, 9), facts)
const dropped = makeInstallToken(installRoot(3), facts)
const decoys = makeInstallToken(decoyRoot, facts)

type Sent = { text?: string; token?: string | undefined; key?: string }

function decide(tenant: Tenant, sent: Sent, { keysKnown = true, leaseValid = true } = {}) {
  const { text = body, key = mine.key } = sent
  const token = 'token' in sent ? sent.token : mine.token
  const keys: (KeyObject | string)[] = []
  const parse = vi.spyOn(JSON, 'parse')
  try {
    const credentials = { signature: signBody(text, key), install: token }
    const edge = makeEdge(tenant, {
      leaseValid: () => leaseValid,
      keysKnown: () => keysKnown,
      verify: (bytes, header, used) => {
        keys.push(used)
        return verifySignature(bytes, header, used)
      },
    })
    const decision = decideSubmission(Buffer.from(text), credentials, edge)
    return { decision, keys, parses: parse.mock.calls.length }
  } finally {
    parse.mockRestore()
  }
}

const suspended: Tenant = { ...acme, status: 'suspended' }
const off: Tenant = { ...acme, sharedSecretOff: true }

/** Refused before anything is parsed. */
const unread: [string, Tenant, Parameters<typeof decide>[1], string][] = [
  ['a wrong key', acme, { key: 'x' }, 'signature_invalid'],
  ['a token that is none', acme, { token: 'ins1' }, 'install_malformed'],
  ['a MAC of another root', acme, foreign, 'install_mac'],
  ['a dropped epoch', acme, dropped, 'install_epoch'],
  ['the decoy’s token', acme, decoys, 'install_mac'],
  ['the decoy’s token for no tenant', acme, { ...decoys, text: unknownBody }, 'signature_invalid'],
  ['an unknown tenant', acme, { text: unknownBody }, 'signature_invalid'],
  ['a suspended tenant', suspended, {}, 'signature_invalid'],
  ['a suspended tenant’s secret', suspended, { key: secret }, 'signature_invalid'],
  ['a tenant without roots', { ...acme, installRoots: [] }, {}, 'install_epoch'],
  ['the secret where it is off', off, { ...expired, key: secret }, 'signature_invalid'],
  ['a token that was retired with its secret', acme, { key: 'r'.repeat(43) }, 'signature_invalid'],
]
/** Refused for what a genuine token says. */
const read: [string, Tenant, Parameters<typeof decide>[1], string][] = [
  ['an expired token', acme, expired, 'install_expired'],
  ['the secret beside a token that counts', acme, { key: secret }, 'install_key'],
]

describe('a submission with a token that does not count', () => {
  it.each([...unread, ...read])(
    'for %s costs two HMACs over the body and gets one answer',
    (_, tenant, sent, reason) => {
      const { decision, keys } = decide(tenant, sent)
      expect(decision).toMatchObject({ kind: 'refused', reason })
      expect((decision as { problem: unknown }).problem).toBe(answer)
      expect(decision).not.toHaveProperty('verifiedTenantId')
      expect(keys).toHaveLength(2)
    },
  )

  const answer = (decide(acme, { key: 'x' }).decision as { problem: unknown }).problem

  it.each(unread)('for %s is not parsed', (_, tenant, sent) => {
    expect(decide(tenant, sent).parses).toBe(0)
  })

  it('for another device gets the same answer, by the install key and by the secret', () => {
    for (const credentials of [mine, { ...expired, key: secret }]) {
      const { decision } = decide(acme, { ...credentials, text: otherDevice })
      expect(decision).toEqual({ kind: 'refused', reason: 'install_device', problem: answer })
    }
  })

  it('gets a 503 while a key is not known, or the lease has run out', () => {
    for (const [, tenant, sent] of [...unread, ...read]) {
      expect(decide(tenant, sent, { keysKnown: false }).decision).toBe(refusals.notSynced)
      const late = decide(tenant, sent, { leaseValid: false })
      expect([late.decision, late.keys]).toEqual([refusals.lease, []])
    }
  })
})

describe('a submission without a token', () => {
  it('costs two HMACs and gets the answer of all others where the secret is off', () => {
    const { decision, keys } = decide(off, { token: undefined, key: secret })
    const wrong = decide(acme, { token: undefined, key: 'x' })
    expect(decision).toMatchObject({ kind: 'refused', reason: 'shared_secret_off' })
    expect((decision as Refused).problem).toBe((wrong.decision as Refused).problem)
    expect([keys.length, wrong.keys.length]).toEqual([2, 2])
  })
})

type Refused = { problem: unknown }

describe('a submission of an install', () => {
  const headOf = (decision: ReturnType<typeof decide>['decision']) =>
    decision.kind === 'accepted' ? JSON.parse(`${decision.head}null}`) : decision.reason

  it('costs one HMAC over the body', () => {
    const { decision, keys } = decide(acme, {})
    expect(headOf(decision)).toMatchObject({
      server_signals: { attestation: { install_key: true } },
    })
    expect(keys).toHaveLength(1)
  })

  it('has the facts of its token, and the hash of its attested key', () => {
    const f = { hardware_backed: true, install_key: false }
    const token = makeInstallToken(installRoot(2), { ...facts, k: 'AAAA', f })
    expect(headOf(decide(acme, token).decision)).toMatchObject({
      server_signals: { attestation: { hardware_backed: true, install_key: true } },
      install: { attested_key: 'cJ6AyISHokEeHuTfufIqhhSS0gxHZRUMDHlKvXD4FHw' },
    })
  })

  it('is accepted where the secret is off', () => {
    expect(decide(off, {}).decision.kind).toBe('accepted')
  })

  it('is stale with the secret beside an expired token', () => {
    const head = headOf(decide(acme, { ...expired, key: secret }).decision)
    expect(head.server_signals).toEqual({ attestation: { stale: true } })
    expect(head).not.toHaveProperty('install')
  })
})
