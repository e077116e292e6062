import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeAssertion } from '../../support/attestation/make-app-attest.ts'
import { makeKey, toKeyInfo } from '../../support/attestation/make-certificate.ts'
import { readVectors } from '../../support/attestation/vectors.ts'
import { runDi } from '../../support/process/command-line.ts'

const file = readVectors()
const find = (name: string) => file.vectors.find((vector) => vector.name === name)!
const bytes = (base64: string) => Buffer.from(base64, 'base64')

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'attestation-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const write = (name: string, content: string | Buffer): string => {
  writeFileSync(join(folder, name), content)
  return name
}

/** Without a stack: from another folder, without addresses. */
const check = (...args: string[]) => runDi(['attestation', 'check', ...args], { INIT_CWD: folder })

const toPem = (chain: readonly string[]): string =>
  chain
    .map((base64) => base64.replace(/.{64}/g, '$&\n'))
    .map((lines) => `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`)
    .join('')

async function checkJson(...args: string[]) {
  const { status, stdout, stderr } = await check(...args, '--json')
  expect([status, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

describe('di attestation check', () => {
  it('prints provider, verdict, reason, level, facts and steps, and exits with 0', async () => {
    const chain = write('chain.pem', toPem(find('android: a key in a StrongBox').input))
    const result = await checkJson(chain)
    expect(Object.keys(result)).toEqual([
      ...['provider', 'verdict', 'reason', 'level', 'facts', 'steps'],
    ])
    // The roots of the vectors are not Google's.
    const { provider, verdict, reason, level } = result
    expect({ provider, verdict, reason, level }).toEqual({
      provider: 'key_attestation',
      verdict: 'rejected',
      reason: 'untrusted_root',
      level: 'none',
    })
    expect(result.facts.not_judged).toEqual(['challenge', 'app', 'revocation'])
    expect(result.steps.map(({ step, ok }: { step: string; ok: boolean }) => [step, ok])).toEqual([
      ['certificates', true],
      ['root', false],
    ])
    const detail = 'the last certificate is of CN=Test Android root'
    expect(result.steps.at(-1).detail).toBe(detail)
  })

  it('names the step that fails, and what its reason means, to a person', async () => {
    const chain = write('chain.pem', toPem(find('android: a key in a StrongBox').input))
    const { status, stdout } = await check(chain)
    expect(status).toBe(0)
    expect(stdout).toContain('verdict     rejected: untrusted_root')
    expect(stdout).toContain('why         The chain does not end at a root of Google or Apple')
    expect(stdout).toMatch(/^FAILED {2}root {10}the last certificate/m)
  })

  it('names a chain of 10,000 certificates too long, however large its file', async () => {
    const { input } = find('android: a key in a StrongBox')
    const chain = write('long.pem', toPem(Array(10_000).fill(input[1]!)))
    expect(await checkJson(chain)).toMatchObject({ reason: 'chain_too_long' })
  })

  it.each(['app attest: from iOS 27', 'app attest: development, which the app allows'])(
    'recognises an attestation in CBOR and in both base64s: %s',
    async (name) => {
      const object = bytes(find(name).input[0]!)
      const files = [
        write('object.cbor', object),
        write('object.txt', `${object.toString('base64')}\n`),
        write('object-url.txt', object.toString('base64url')),
      ]
      for (const written of files) {
        const result = await checkJson(written)
        expect(result).toMatchObject({ provider: 'app_attest', reason: 'untrusted_root' })
        expect(result.facts.object).toBe('attestation')
      }
    },
  )

  it('checks an assertion with its public key and the body that it signs', async () => {
    const { publicKey, privateKey } = makeKey()
    const body = Buffer.from('{"tenant_id":"acme"}')
    const made = makeAssertion({ appId: 'T.b', clientData: body, privateKey, counter: 7 })
    const assertion = write('assertion.cbor', made)
    const pem = publicKey.export({ format: 'pem', type: 'spki' })
    const keys = [
      write('key.pem', pem),
      write('key.der', toKeyInfo(publicKey)),
      write('key.txt', toKeyInfo(publicKey).toString('base64')),
    ]
    const signed = ['--body', write('body.json', body)]
    for (const key of keys) {
      const result = await checkJson(assertion, '--public-key', key, ...signed)
      expect(result).toMatchObject({ verdict: 'verified', facts: { counter: 7 } })
    }
    const challenge = ['--challenge', body.toString('base64url')]
    const byChallenge = await checkJson(assertion, '--public-key', keys[0]!, ...challenge)
    expect(byChallenge.verdict).toBe('verified')
    const other = ['--body', write('other.json', '{}')]
    const wrong = await checkJson(assertion, '--public-key', keys[0]!, ...other)
    expect(wrong).toMatchObject({ verdict: 'rejected', reason: 'signature_invalid', level: 'none' })
    const { status, stderr } = await check(assertion)
    expect([status, stderr]).toEqual([1, expect.stringContaining('--public-key')])
  })

  it('checks a Play token with the two keys, its nonce and a moment', async () => {
    const vector = find('play: strong integrity')
    const token = write('token.txt', bytes(vector.input[0]!))
    const keys = ['--keys', write('keys.json', JSON.stringify(file.play))]
    const at = ['--at', new Date(vector.now_ms).toISOString()]
    const nonce = ['--challenge', vector.challenge]
    expect(await checkJson(token, ...keys, ...at, ...nonce)).toMatchObject({
      provider: 'play_integrity',
      verdict: 'verified',
      level: 'hardware',
      facts: { not_judged: ['app'], package: 'com.example.bank', app_licensing: 'LICENSED' },
    })
    expect((await checkJson(token, ...keys, ...at)).facts.not_judged).toEqual(['challenge', 'app'])
    expect((await checkJson(token, ...keys)).reason).toBe('token_too_old')
    const { status, stderr } = await check(token)
    expect([status, stderr]).toEqual([1, expect.stringContaining('--keys')])
  })

  it('repeats no key of a file that it cannot read', async () => {
    const token = write('token.txt', bytes(find('play: strong integrity').input[0]!))
    const secret = 'c2VjcmV0IHNlY3JldCBzZWNyZXQ='
    for (const keys of [`{"decryption_key":"${secret}"}`, `{"decryption_key":${secret}}`]) {
      const { status, stderr } = await check(token, '--keys', write('keys.json', keys))
      expect(status).toBe(1)
      expect(stderr).toContain('decryption_key (32 bytes)')
      expect(stderr).not.toContain(secret)
    }
  })

  it('says what is wrong with its options, with status 1', async () => {
    const chain = write('chain.pem', toPem(find('android: a key in a StrongBox').input))
    const status = write('status.json', '{"entries":[]}')
    const wrong: [args: string[], message: string][] = [
      [[chain, '--challenge', 'not base64!'], '--challenge is no base64'],
      [[chain, '--at', 'tomorrow'], '--at is no time'],
      [[chain, '--status', status], 'is not the status list'],
      [[chain, '--provider', 'app_attest'], 'is evidence of key_attestation, not of app_attest'],
      [[chain, '--provider', 'safety_net'], 'Allowed choices are'],
      [[write('hello.txt', 'hello, world')], 'is no chain in PEM'],
      [['missing.pem'], 'missing.pem cannot be read'],
    ]
    for (const [args, message] of wrong) {
      const { status, stderr, stdout } = await check(...args)
      expect([status, stdout, stderr]).toEqual([1, '', expect.stringContaining(message)])
    }
  })

  it.each(['key_attestation', 'app_attest', 'play_integrity'])(
    'rejects what a person says is of %s and is none',
    async (provider) => {
      const keys = ['--keys', write('keys.json', JSON.stringify(file.play))]
      const hello = write('hello.txt', 'hello, world')
      const result = await checkJson(hello, '--provider', provider, ...keys)
      expect(result).toMatchObject({ provider, verdict: 'rejected', reason: 'malformed' })
    },
  )
})
