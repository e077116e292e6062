/**
 * `verifyVerdict`, of both entries alike, believes a token of the service that answers the question
 * that was asked, and no other: forged, changed, expired, or of another tenant, key or algorithm.
 */
import { createHmac, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { VerdictJwk } from '#shared/core/verdicts/verdict-keys.ts'
import {
  createVerdictSigner,
  noAttestation,
  toVerdictClaims,
  type VerdictClaims,
} from '#shared/core/verdicts/verdict-token.ts'
import { makeVerdictKey } from '#shared/io/verdicts/make-verdict-key.ts'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { verdictKeysStatus, verifyVerdict } from '../../../shared/client/client.ts'
import {
  VerdictKeysError,
  type VerdictVerificationError,
  verdictFaults,
} from '../../../shared/client/errors.ts'
import * as webClient from '../../../shared/client/webcrypto.ts'
import { seed } from '../../support/process/seed.ts'

const nowMs = Date.parse('2026-03-01T09:30:00Z')

function makeKey() {
  const { jwk, privateKey } = makeVerdictKey()
  const bytes = Buffer.from(privateKey, 'base64')
  const key = createPrivateKey({ key: bytes, format: 'der', type: 'pkcs8' })
  return { jwk, key, sign: createVerdictSigner(jwk.kid, key).sign }
}

const present = makeKey()
const claims: VerdictClaims = toVerdictClaims('https://di.example.com', {
  tenantId: 'acme',
  deviceId: 'pixel-1',
  sessionId: 's-1',
  userId: 'ada',
  eventId: 'evt_1',
  request: { audience: 'checkout', nonce: 'n-1' },
  score: 12,
  action: 'ALLOW',
  attestation: noAttestation,
  receivedAtMs: nowMs,
})
const token = present.sign(claims)
const keys = { keys: [present.jwk] }
const question = { keys, audience: 'checkout', nonce: 'n-1', nowMs }

type Options = Parameters<typeof verifyVerdict>[1]

/** What both entries say: the fault, the name of another error, or the verdict. */
async function verifyBoth(text: string, options: Options) {
  const [byNode, byWeb] = await Promise.all(
    [verifyVerdict, webClient.verifyVerdict].map((verify) =>
      verify(text, options).catch((error: Error) => {
        return (error as VerdictVerificationError).fault ?? error.name
      }),
    ),
  )
  expect(byWeb).toEqual(byNode)
  return byNode!
}

const faultOf = (text: string, more: Partial<Options> = {}) =>
  verifyBoth(text, { ...question, ...more })

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A token with any header and claims, signed by the present key or anyhow. */
function forge(
  header: object,
  body: object,
  makeSignature: (input: Buffer) => Buffer = (input) =>
    sign('sha256', input, { key: present.key, dsaEncoding: 'ieee-p1363' }),
): string {
  const input = `${encode(header)}.${encode(body)}`
  return `${input}.${makeSignature(Buffer.from(input)).toString('base64url')}`
}
const head = { alg: 'ES256', kid: present.jwk.kid, typ: 'JWT' }

describe('a token of the service', () => {
  it('gives its verdict', async () => {
    expect(await verifyBoth(token, question)).toEqual({
      action: 'ALLOW',
      score: 12,
      tenantId: 'acme',
      deviceId: 'pixel-1',
      sessionId: 's-1',
      userId: 'ada',
      eventId: 'evt_1',
      attestation: { provider: 'none', level: 'none', verdict: 'none' },
      purpose: 'checkout',
      nonce: 'n-1',
      issuer: 'https://di.example.com',
      issuedAtMs: nowMs,
      expiresAtMs: nowMs + 300_000,
    })
  })

  it('counts among other keys, and for the tenant and the issuer that are asked for', async () => {
    const others = [makeKey().jwk, makeKey().jwk]
    const more = { tenantId: 'acme', issuer: 'https://di.example.com' }
    const set = { keys: [others[0]!, present.jwk, others[1]!] }
    expect(await faultOf(token, { ...more, keys: set })).toMatchObject({ action: 'ALLOW' })
  })

  it('counts from its issue until it expires, with a minute for clocks', async () => {
    const at = (seconds: number) => faultOf(token, { nowMs: nowMs + seconds * 1000 })
    expect(await at(-61)).toBe('future')
    expect(await at(-60)).toMatchObject({ score: 12 })
    expect(await at(359)).toMatchObject({ score: 12 })
    expect(await at(360)).toBe('expired')
    expect(await faultOf(token, { nowMs: nowMs + 300_000, toleranceSeconds: 0 })).toBe('expired')
    expect(await faultOf(token, { nowMs: nowMs - 1, toleranceSeconds: 0 })).toBe('future')
  })
})

describe('a token that is not believed', () => {
  it.each([
    ['of another audience', { audience: 'login' }, 'audience'],
    ['of another nonce', { nonce: 'n-2' }, 'nonce'],
    ['of another tenant', { tenantId: 'evil' }, 'tenant'],
    ['of another issuer', { issuer: 'https://evil.example.com' }, 'issuer'],
    ['of a key that is gone', { keys: { keys: [makeKey().jwk] } }, 'unknown_key'],
    ['without any key', { keys: { keys: [] } }, 'unknown_key'],
  ] as const)('%s', async (_, more, fault) => {
    expect(await faultOf(token, more)).toBe(fault)
  })

  it('signed by another key under the id of ours', async () => {
    const other = makeKey()
    const forged = createVerdictSigner(present.jwk.kid, other.key).sign(claims)
    expect(await faultOf(forged)).toBe('forged')
    const named = other.sign(claims)
    expect(await faultOf(named)).toBe('unknown_key')
  })

  it.each(['none', 'None', 'HS256', 'ES384', 'RS256', 'PS256', 'EdDSA', 'es256', '', undefined])(
    'with the algorithm %s',
    async (alg) => {
      expect(await faultOf(forge({ ...head, alg }, claims))).toBe('algorithm')
    },
  )

  it('without a signature, or with a MAC keyed with the public key in any spelling', async () => {
    const { jwk } = present
    expect(await faultOf(forge({ ...head, alg: 'none' }, claims, () => Buffer.alloc(0)))).toBe(
      'algorithm',
    )
    expect(await faultOf(`${encode(head)}.${encode(claims)}.`)).toBe('forged')
    const secrets = [JSON.stringify(jwk), jwk.x, jwk.y, jwk.kid].map((text) => Buffer.from(text))
    for (const alg of ['HS256', 'ES256']) {
      for (const secret of [...secrets, Buffer.from(jwk.x, 'base64url')]) {
        const mac = (input: Buffer) => createHmac('sha256', secret).update(input).digest()
        const forged = forge({ ...head, alg }, claims, mac)
        expect(await faultOf(forged)).toBe(alg === 'HS256' ? 'algorithm' : 'forged')
      }
    }
  })

  it('that brings its own key along', async () => {
    const other = makeKey()
    for (const more of [{ jwk: other.jwk }, { jku: 'https://evil.example.com' }, { x5c: ['x'] }]) {
      const forged = forge({ ...head, ...more }, claims, (input) =>
        sign('sha256', input, { key: other.key, dsaEncoding: 'ieee-p1363' }),
      )
      expect(await faultOf(forged)).toBe('forged')
    }
  })

  it('whose signature is a DER one, or that of r = s = 0', async () => {
    const der = (input: Buffer) => sign('sha256', input, present.key)
    expect(await faultOf(forge(head, claims, der))).toBe('forged')
    expect(await faultOf(forge(head, claims, () => Buffer.alloc(64)))).toBe('forged')
  })

  it.each([
    ['an empty text', ''],
    ['two parts', 'a.b'],
    ['four parts', `${token}.a`],
    ['a header that is no JSON', `${Buffer.from('{').toString('base64url')}.e30.e30`],
    ['a header that is a list', `${encode([])}.e30.e30`],
    ['padding', token.replace('.', '=.')],
    ['the other alphabet', `${token.slice(0, 5)}+${token.slice(6)}`],
    ['a line break', `${token}\n`],
    ['100 KB', `${'a'.repeat(100_000)}.e30.e30`],
  ])('%s', async (_, text) => {
    expect(['malformed', 'forged']).toContain(await faultOf(text))
  })

  it('is what an app sends in its place, of any type', async () => {
    for (const value of [undefined, null, 7, {}, [token]]) {
      expect(await faultOf(value as unknown as string)).toBe('malformed')
    }
  })

  it('without a kid, with another typ, or with a critical extension', async () => {
    const { kid: _, ...nameless } = head
    for (const header of [
      nameless,
      { ...head, kid: 7 },
      { ...head, typ: 'at+jwt' },
      { ...head, crit: ['b64'], b64: false },
    ]) {
      expect(await faultOf(forge(header, claims))).toBe('malformed')
    }
  })

  it('that lacks a claim, or has one of another type, though it is signed', async () => {
    for (const name of Object.keys(claims)) {
      if (name === 'usr') continue
      const { [name as keyof VerdictClaims]: _, ...rest } = claims
      expect(await faultOf(forge(head, rest)), name).toBe('malformed')
      const wrong = { ...claims, [name]: [claims[name as keyof VerdictClaims]] }
      expect(await faultOf(forge(head, wrong)), name).toBe('malformed')
    }
    expect(await faultOf(forge(head, { ...claims, exp: null }))).toBe('malformed')
    expect(await faultOf(forge(head, { ...claims, aud: ['acme', 'evil'] }))).toBe('malformed')
  })

  it('in two thousand mutations of one: none is accepted', async () => {
    const random = createRandom(seed, 'verdict mutations')
    const pick = (count: number) => random.int(0, count - 1)
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const others = Array.from({ length: 3 }, (_, at) =>
      present.sign({ ...claims, nonce: `n-${at + 2}` }),
    )
    const mutate = (): string => {
      const at = pick(token.length)
      const letter = alphabet[pick(64)]!
      switch (pick(7)) {
        case 0:
          return token.slice(0, at) + letter + token.slice(at + 1)
        case 1:
          return token.slice(0, at) + letter + token.slice(at)
        case 2:
          return token.slice(0, at)
        case 3:
          return token.slice(0, at) + token.slice(at + 1 + pick(8))
        case 4: {
          const parts = token.split('.')
          const other = others[pick(3)]!.split('.')
          parts[1 + pick(2)] = other[1 + pick(2)]!
          return parts.join('.')
        }
        case 5: {
          const [header, body, made] = token.split('.') as [string, string, string]
          const bytes = Buffer.from(made, 'base64url')
          bytes[pick(64)]! ^= 1 << pick(8)
          return `${header}.${body}.${bytes.toString('base64url')}`
        }
        default: {
          const [header, body, made] = token.split('.') as [string, string, string]
          const text = Buffer.from(body, 'base64url')
          text[pick(text.length)]! ^= 1 << pick(8)
          return `${header}.${text.toString('base64url')}.${made}`
        }
      }
    }
    let accepted = 0
    let tried = 0
    // Of the last letter of the signature four bits are no part of it.
    const tails = [...alphabet].map((letter) => token.slice(0, -1) + letter)
    for (const text of [...tails, ...Array.from({ length: 2_000 }, mutate)]) {
      if (text === token) continue
      tried++
      const result = await verifyVerdict(text, question).catch((error: Error) => {
        expect(Object.keys(verdictFaults)).toContain((error as VerdictVerificationError).fault)
        return null
      })
      if (result !== null) accepted++
    }
    expect(accepted).toBe(0)
    expect(tried).toBeGreaterThan(1_900)
  })
})

describe('keys of a set', () => {
  const only = (key: object) => ({ keys: { keys: [key] } })

  it('count only for ES256 signatures, whatever else the set has', async () => {
    const { jwk } = present
    for (const change of [{ alg: 'RS256' }, { use: 'enc' }, { kty: 'RSA' }, { crv: 'P-384' }]) {
      expect(await faultOf(token, only({ ...jwk, ...change }))).toBe('unknown_key')
    }
    const { alg: _, use: __, ...plain } = jwk
    expect(await faultOf(token, only(plain))).toMatchObject({ action: 'ALLOW' })
    const secret = { kty: 'oct', k: 'c2VjcmV0', kid: jwk.kid, alg: 'ES256' }
    expect(await faultOf(token, only(secret))).toBe('unknown_key')
  })

  it('that cannot be read are passed over', async () => {
    const { jwk } = present
    const broken = { ...jwk, x: jwk.y }
    expect(await faultOf(token, only(broken))).toBe('forged')
    expect(await faultOf(token, { keys: { keys: [broken, jwk] } })).toMatchObject({ score: 12 })
    const edwards = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
    expect(await faultOf(token, only({ ...edwards, kid: jwk.kid }))).toBe('unknown_key')
  })
})

describe('keys that are fetched', () => {
  afterEach(() => vi.useRealTimers())

  /** A fetcher whose set can be changed, and that counts. */
  function makeFetcher(first: VerdictJwk[]) {
    const state = { keys: first, calls: 0, fails: false }
    const fetchKeys = async () => {
      state.calls++
      if (state.fails) throw new Error('no route')
      return { keys: state.keys }
    }
    return { state, fetchKeys }
  }
  const verify = (text: string, source: Options['keys']) =>
    verifyVerdict(text, { ...question, keys: source }).then(
      ({ action }) => action,
      (error: VerdictVerificationError) => error.fault ?? error.name,
    )

  it('are kept for five minutes, for any number of tokens at once', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: nowMs })
    const { state, fetchKeys } = makeFetcher([present.jwk])
    const many = await Promise.all(Array.from({ length: 50 }, () => verify(token, fetchKeys)))
    expect(new Set(many)).toEqual(new Set(['ALLOW']))
    expect(state.calls).toBe(1)
    vi.setSystemTime(nowMs + 299_999)
    await verify(token, fetchKeys)
    expect(state.calls).toBe(1)
    vi.setSystemTime(nowMs + 300_000)
    await verify(token, fetchKeys)
    expect(state.calls).toBe(2)
  })

  it('are fetched once more for an unknown key: a rotation needs nothing of the verifier', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: nowMs })
    const { state, fetchKeys } = makeFetcher([present.jwk])
    const next = makeKey()
    expect(await verify(token, fetchKeys)).toBe('ALLOW')
    state.keys = [next.jwk, present.jwk]
    vi.setSystemTime(nowMs + 10_000)
    expect(await verify(next.sign(claims), fetchKeys)).toBe('ALLOW')
    expect(await verify(token, fetchKeys)).toBe('ALLOW')
    expect(state.calls).toBe(2)
  })

  it('are fetched once in ten seconds, however many tokens name keys of nobody', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: nowMs })
    const { state, fetchKeys } = makeFetcher([present.jwk])
    await verify(token, fetchKeys)
    for (let second = 0; second < 30; second++) {
      vi.setSystemTime(nowMs + second * 1000)
      for (let at = 0; at < 10; at++) {
        expect(await verify(makeKey().sign(claims), fetchKeys)).toBe('unknown_key')
      }
    }
    expect(state.calls).toBe(3)
  })

  it('verify for an hour while the service is away, and a failure of the first is no verdict', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: nowMs })
    const { state, fetchKeys } = makeFetcher([present.jwk])
    state.fails = true
    const fetchedMs = nowMs + 10_000
    for (let check = 0; check < 20; check++) {
      expect(await verify(token, fetchKeys)).toBe('VerdictKeysError')
    }
    expect(state.calls).toBe(1)
    state.fails = false
    vi.setSystemTime(fetchedMs)
    expect(await verify(token, fetchKeys)).toBe('ALLOW')
    state.fails = true
    vi.setSystemTime(fetchedMs + 3_599_000)
    expect(await verify(token, fetchKeys)).toBe('ALLOW')
    expect(await verify(makeKey().sign(claims), fetchKeys)).toBe('VerdictKeysError')
    vi.setSystemTime(fetchedMs + 3_600_000)
    expect(await verify(token, fetchKeys)).toBe('VerdictKeysError')
  })

  it('are asked for once in ten seconds of an outage, and a failure is remembered', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: nowMs })
    const { state, fetchKeys } = makeFetcher([present.jwk])
    await verify(token, fetchKeys)
    expect(verdictKeysStatus(fetchKeys)).toEqual({ fetchedAtMs: nowMs, error: null })
    state.fails = true
    for (let second = 300; second < 360; second++) {
      vi.setSystemTime(nowMs + second * 1_000)
      for (let check = 0; check < 10; check++) {
        expect(await verify(token, fetchKeys)).toBe('ALLOW')
        expect(await verify(makeKey().sign(claims), fetchKeys)).toBe('VerdictKeysError')
      }
    }
    expect(state.calls).toBe(7)
    const { fetchedAtMs, error } = verdictKeysStatus(fetchKeys)
    expect([fetchedAtMs, error?.message]).toEqual([
      nowMs,
      'the verdict keys cannot be fetched (no route)',
    ])
    expect(verdictKeysStatus(keys)).toEqual({ fetchedAtMs: null, error: null })
  })

  it('that are kept verify without a wait while the service hangs', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'], now: nowMs })
    let calls = 0
    // It answers once and never again.
    const fetchKeys = () => (++calls === 1 ? Promise.resolve(keys) : new Promise<never>(() => {}))
    expect(await verify(token, fetchKeys)).toBe('ALLOW')
    vi.setSystemTime(nowMs + 1_800_000)
    // Time stands still here: a check that waited for the fetch would never end.
    for (let check = 0; check < 100; check++) expect(await verify(token, fetchKeys)).toBe('ALLOW')
    expect(calls).toBe(2)
    const unknown = verify(makeKey().sign(claims), fetchKeys)
    await vi.advanceTimersByTimeAsync(5_000)
    expect(await unknown).toBe('VerdictKeysError')
    expect(verdictKeysStatus(fetchKeys).error?.message).toContain('no answer in 5 s')
    expect(await verify(token, fetchKeys)).toBe('ALLOW')
    expect(calls).toBe(2)
  })

  it('come from an address, with one request', async () => {
    let requests = 0
    const server = createServer((_, response) => {
      requests++
      response.end(JSON.stringify(keys))
    })
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve)
    })
    onTestFinished(() => {
      server.close()
    })
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`
    expect(await verify(token, address)).toBe('ALLOW')
    expect(await verify(token, new URL(address))).toBe('ALLOW')
    expect(requests).toBe(1)
  })

  it.each([
    ['an error', 500, '{}'],
    ['no JSON', 200, '<html>'],
    ['no key set', 200, '{"keys":7}'],
    ['a list with no keys in it', 200, '{"keys":[null]}'],
    ['too much', 200, `{"keys":[],"x":"${'x'.repeat(70_000)}"}`],
  ])('are unknown when the address answers %s', async (_, status, text) => {
    const server = createServer((__, response) => {
      response.statusCode = status
      response.end(text)
    })
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve)
    })
    onTestFinished(() => {
      server.close()
    })
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`
    await expect(verifyVerdict(token, { ...question, keys: address })).rejects.toBeInstanceOf(
      VerdictKeysError,
    )
  })
})

describe('a mistake of the caller', () => {
  it.each<[string, object, RegExp]>([
    ['no options', undefined as unknown as object, /^options must be an object/],
    ['no nonce', { keys, audience: 'checkout' }, /^nonce is undefined: pass the nonce/],
    ['an empty nonce', { ...question, nonce: '' }, /^nonce is empty/],
    ['no audience', { keys, nonce: 'n-1' }, /^audience is undefined/],
    ['no keys', { audience: 'checkout', nonce: 'n-1' }, /^keys must be a key set, an address/],
    ['keys that are a promise', { ...question, keys: Promise.resolve(keys) }, /await it/],
    ['keys that are a list', { ...question, keys: [present.jwk] }, /^keys must be a key set/],
    ['a relative address', { ...question, keys: '/v1/di/verdict-keys' }, /^keys must begin with/],
    ['an empty tenant', { ...question, tenantId: '' }, /^tenantId is empty/],
    ['an empty issuer', { ...question, issuer: '' }, /^issuer is empty/],
    ['a clock in seconds', { ...question, nowMs: 1_772_357_400 }, /^nowMs must be a number of ms/],
    ['a negative tolerance', { ...question, toleranceSeconds: -1 }, /^toleranceSeconds must be/],
    ['a misspelt option', { ...question, tenant_id: 'acme' }, /^tenant_id is not an option/],
  ])('%s is a TypeError with its name', async (_, options, message) => {
    for (const verify of [verifyVerdict, webClient.verifyVerdict]) {
      const error = await verify(token, options as Options).catch((one: unknown) => one)
      expect(error).toBeInstanceOf(TypeError)
      expect((error as Error).message).toMatch(message)
    }
  })
})
