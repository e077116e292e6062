import { sign } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { AttestedApp } from '#shared/core/attestation/apps.ts'
import {
  checkEventSignature,
  findPlayToken,
  isEvidenceForm,
  toEventSignals,
  toPlayEvidence,
} from '#shared/core/installs/event-evidence.ts'
import { hashSerial, noEvidence } from '#shared/core/installs/evidence-signals.ts'
import { openSerials, packSerials } from '#shared/core/installs/revoked-serials.ts'
import { makeAssertion } from '../../support/attestation/make-app-attest.ts'
import { makeKey, toKeyInfo } from '../../support/attestation/make-certificate.ts'

const body = Buffer.from('{"tenant_id":"acme","device_id":"pixel-1"}')
const key = makeKey()
const publicKey = toKeyInfo(key.publicKey).toString('base64')
const android = { provider: 'key_attestation' as const, publicKey }
const apple = { provider: 'app_attest' as const, publicKey }
const bank: AttestedApp = {
  platform: 'ios',
  id: 'com.example.bank',
  team: 'ABCDE12345',
  allowsDevelopment: false,
}
const signBody = (of = body) => sign('sha256', of, key.privateKey).toString('base64')

describe('the signature of an attested key over a body', () => {
  it('is ECDSA in DER over the body, in base64 of either alphabet', () => {
    const header = signBody()
    for (const text of [header, Buffer.from(header, 'base64').toString('base64url')]) {
      expect(checkEventSignature(text, body, android, [])).toEqual({
        provider: 'key_attestation',
        verdict: 'verified',
        reason: null,
        counter: null,
        signals: {},
        proven: true,
      })
    }
  })

  const other = makeKey()
  const raw = { key: key.privateKey, dsaEncoding: 'ieee-p1363' as const }
  const twice = `${signBody()}, ${signBody()}`
  it.each([
    ['another body', signBody(Buffer.from('{}')), 'signature_invalid'],
    ['another key', sign('sha256', body, other.privateKey).toString('base64'), 'signature_invalid'],
    ['the form of IEEE P1363', sign('sha256', body, raw).toString('base64'), 'signature_invalid'],
    [
      'bytes behind it',
      `${Buffer.concat([Buffer.from(signBody(), 'base64'), Buffer.of(0)]).toString('base64')}`,
      'signature_invalid',
    ],
    ['another hash', sign('sha384', body, key.privateKey).toString('base64'), 'signature_invalid'],
    ['no base64', '!!!!', 'malformed'],
    ['nothing', '', 'malformed'],
    ['a repeated header, as Node joins it', twice, 'malformed'],
    ['10,000 characters', 'A'.repeat(10_000), 'too_large'],
  ])('is rejected, and never throws, for %s', (_, header, reason) => {
    const evidence = checkEventSignature(header, body, android, [])
    expect(evidence).toMatchObject({ verdict: 'rejected', reason, counter: null })
  })

  it('is rejected when the install has no key, or one that signs no events', () => {
    const none = { provider: 'none' as const, publicKey: null }
    expect(checkEventSignature(signBody(), body, none, [])).toMatchObject({ reason: 'key_missing' })
    const large = toKeyInfo(makeKey('P-384').publicKey).toString('base64')
    const others = { ...android, publicKey: large }
    const expected = { reason: 'unsupported_algorithm' }
    expect(checkEventSignature(signBody(), body, others, [])).toMatchObject(expected)
    const broken = { ...android, publicKey: 'AAAA' }
    expect(checkEventSignature(signBody(), body, broken, [])).toMatchObject(expected)
  })

  it('of an App Attest key is an assertion, whose counter counts only when it is valid', () => {
    const of = { appId: 'ABCDE12345.com.example.bank', privateKey: key.privateKey, counter: 41 }
    const header = makeAssertion({ ...of, clientData: body }).toString('base64')
    const evidence = checkEventSignature(header, body, apple, [bank])
    expect(evidence).toMatchObject({ verdict: 'verified', counter: 41 })
    const copied = checkEventSignature(header, Buffer.from('{}'), apple, [bank])
    expect(copied).toMatchObject({ reason: 'signature_invalid', counter: null })
    expect(checkEventSignature(header, body, apple, [])).toMatchObject({
      reason: 'app_unknown',
      counter: null,
    })
    // A bare signature is none: it does not say which app made it.
    expect(checkEventSignature(signBody(), body, apple, [bank]).verdict).toBe('rejected')
  })

  it('holds for no other bit of a signature, an assertion or the body', () => {
    const of = { appId: 'ABCDE12345.com.example.bank', privateKey: key.privateKey }
    const cases = [
      { install: android, bytes: Buffer.from(signBody(), 'base64') },
      { install: apple, bytes: makeAssertion({ ...of, clientData: body }) },
    ]
    const accepted: string[] = []
    const flip = (bytes: Buffer, bit: number) => {
      const changed = Buffer.from(bytes)
      changed[bit >> 3]! ^= 1 << (bit & 7)
      return changed
    }
    const check = (header: Buffer, signed: Buffer, install: typeof android | typeof apple) =>
      checkEventSignature(header.toString('base64'), signed, install, [bank]).verdict
    for (const { install, bytes } of cases) {
      expect(check(bytes, body, install)).toBe('verified')
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        if (check(flip(bytes, bit), body, install) !== 'rejected') accepted.push(`header ${bit}`)
      }
      for (let bit = 0; bit < body.length * 8; bit++) {
        if (check(bytes, flip(body, bit), install) !== 'rejected') accepted.push(`body ${bit}`)
      }
    }
    expect(accepted).toEqual([])
  })

  it('has a form, which is looked at before anything is verified', () => {
    const play = 'eyJh.eyJh.eyJh.eyJh.eyJh'
    expect([signBody(), play, 'AAAA'].filter((header) => !isEvidenceForm(header))).toEqual([])
    const others = ['', 'junk', 'hello world!', 'a.b.c', twice, 'A'.repeat(10_000)]
    expect(others.filter(isEvidenceForm)).toEqual(['junk'])
  })

  it('tells a Play token by its dots, and parses none that is too long', () => {
    expect(findPlayToken('a.b.c.d.e')).toBe('a.b.c.d.e')
    expect(findPlayToken(signBody())).toBeNull()
    expect(findPlayToken(`${'a'.repeat(9_000)}.b.c.d.e`)).toBeNull()
  })
})

const serials = [hashSerial('a1b2'), hashSerial('c3d4')]
const signals = { verified: true, hardware_backed: true, os_patch_age_days: 31 }
const verified = checkEventSignature(signBody(), body, android, [])
const rejected = checkEventSignature(signBody(Buffer.from('x')), body, android, [])

describe('the server signals of an event', () => {
  it('are those of its install, without evidence and with evidence that holds', () => {
    expect(toEventSignals({ signals, serials }, null, null)).toEqual(signals)
    expect(toEventSignals({ signals, serials }, verified, null)).toEqual(signals)
    const unlocked = { rejected: true, bootloader_unlocked: true }
    expect(toEventSignals({ signals: unlocked, serials }, verified, null)).toEqual(unlocked)
  })

  it('are the same with evidence that nothing stands behind', () => {
    expect(toEventSignals({ signals, serials }, rejected, null)).toEqual(signals)
    const junk = toPlayEvidence({ ...noEvidence, verdict: 'rejected', signals: { rejected: true } })
    expect(toEventSignals({ signals, serials }, junk, null)).toEqual(signals)
  })

  it('lose their credit with evidence that speaks against the phone', () => {
    const of = { appId: 'ABCDE12345.com.example.other', privateKey: key.privateKey }
    const header = makeAssertion({ ...of, clientData: body }).toString('base64')
    const otherApp = checkEventSignature(header, body, apple, [bank])
    expect(otherApp).toMatchObject({ reason: 'app_unknown', proven: true })
    expect(toEventSignals({ signals, serials }, otherApp, null)).toEqual({
      rejected: true,
      hardware_backed: false,
      os_patch_age_days: 31,
    })
  })

  it('lose it from when a serial of the chain is revoked', () => {
    const others = openSerials(packSerials(['1', 'ffff']))
    expect(toEventSignals({ signals, serials }, null, others)).toEqual(signals)
    const revoked = openSerials(packSerials(['1', 'c3d4', 'ffff']))
    expect(toEventSignals({ signals, serials }, verified, revoked)).toEqual({
      revoked: true,
      hardware_backed: false,
      os_patch_age_days: 31,
    })
  })

  it('take over what a Play token says, and nothing when there was no room to open it', () => {
    const play = { verified: true, pi_device: ['MEETS_DEVICE_INTEGRITY'], app_access_risk: [] }
    const opened = toPlayEvidence({
      ...noEvidence,
      provider: 'play_integrity',
      verdict: 'verified',
      signals: play,
      proven: true,
    })
    const before = { verified: true, pi_device: [], pi_app: 'UNEVALUATED' }
    expect(toEventSignals({ signals: before, serials: [] }, opened, null)).toEqual({
      ...play,
      pi_app: 'UNEVALUATED',
    })
    expect(toEventSignals({ signals, serials }, toPlayEvidence(null), null)).toEqual(signals)
  })
})

describe('the revoked serials', () => {
  it('are found, each and no other, in lists of any size', () => {
    for (const size of [0, 1, 2, 3, 1_000]) {
      const listed = Array.from({ length: size }, (_, index) => (index * 7 + 1).toString(16))
      const revoked = openSerials(packSerials(listed))
      expect(revoked.size).toBe(size)
      expect(listed.filter((serial) => !revoked.has(hashSerial(serial)))).toEqual([])
      const others = Array.from({ length: 500 }, (_, index) => `f00${index.toString(16)}`)
      expect(others.filter((serial) => revoked.has(hashSerial(serial)))).toEqual([])
    }
    expect(openSerials(packSerials(['1'])).has('short')).toBe(false)
  })
})
