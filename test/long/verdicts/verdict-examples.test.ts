/**
 * The examples that verify a verdict with a JWT library, run unchanged: they print the claims of a
 * genuine token, and fail for every other. Python and Node run here; the compilers and libraries of
 * the other languages are not on a plain machine.
 */
import { spawn } from 'node:child_process'
import { createHmac, createPrivateKey } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  createVerdictSigner,
  noAttestation,
  toVerdictClaims,
  type VerdictClaims,
} from '#shared/core/verdicts/verdict-token.ts'
import { makeVerdictKey } from '#shared/io/verdicts/make-verdict-key.ts'
import { providePyjwt } from '../../support/client/pyjwt.ts'

const examples = join(import.meta.dirname, '../../../services/ingest/verdicts/examples')

function makeKey() {
  const { jwk, privateKey } = makeVerdictKey()
  const bytes = Buffer.from(privateKey, 'base64')
  const key = createPrivateKey({ key: bytes, format: 'der', type: 'pkcs8' })
  return { jwk, key, sign: createVerdictSigner(jwk.kid, key).sign }
}
const present = makeKey()
const other = makeKey()

let server: Server
let keysUrl: string
let python: Record<string, string>

beforeAll(async () => {
  server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ keys: [makeKey().jwk, present.jwk] }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  keysUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/di/verdict-keys`
  python = await providePyjwt()
})
afterAll(() => {
  server?.close()
})

const claimsAt = (ms: number): VerdictClaims =>
  toVerdictClaims('device-intelligence', {
    tenantId: 'acme',
    deviceId: 'pixel-1',
    sessionId: 's-1',
    userId: undefined,
    eventId: 'evt_1',
    request: { audience: 'checkout', nonce: 'n-1' },
    score: 90,
    action: 'BLOCK',
    attestation: noAttestation,
    receivedAtMs: ms,
  })

const programs = {
  Python: { command: ['python3', 'verify_verdict.py'], env: () => python },
  Node: { command: [process.execPath, 'verify-verdict.mjs'], env: () => ({}) },
} as const

type Program = (typeof programs)[keyof typeof programs]

/** @returns the claims that the program prints; null when it fails */
async function run(
  { command: [program, file], env }: Program,
  token: string,
  asked: { tenant?: string; audience?: string; nonce?: string } = {},
): Promise<Record<string, unknown> | null> {
  const { tenant = 'acme', audience = 'checkout', nonce = 'n-1' } = asked
  const child = spawn(program, [join(examples, file)], {
    env: {
      PATH: process.env.PATH,
      ...env(),
      KEYS_URL: keysUrl,
      TENANT: tenant,
      AUDIENCE: audience,
      NONCE: nonce,
    },
  })
  let out = ''
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk
  })
  child.stderr.resume()
  child.stdin.on('error', () => {})
  child.stdin.end(token)
  const [code] = (await once(child, 'close')) as [number | null]
  return code === 0 ? (JSON.parse(out) as Record<string, unknown>) : null
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

describe.each(Object.entries(programs))('%s', (_, program) => {
  const claims = claimsAt(Date.now())
  const token = present.sign(claims)

  it('prints the claims of a genuine token', async () => {
    expect(await run(program, token)).toEqual(claims)
  })

  it.each<[string, () => string[]]>([
    [
      'that is expired, changed, or of a key of nobody',
      () => {
        const [head, , made] = token.split('.')
        return [
          present.sign(claimsAt(Date.now() - 6 * 60_000 - 1_000)),
          other.sign(claims),
          createVerdictSigner(present.jwk.kid, other.key).sign(claims),
          `${head}.${encode({ ...claims, act: 'ALLOW' })}.${made}`,
        ]
      },
    ],
    [
      'without a signature, or with a MAC of the public key',
      () => {
        const none = encode({ alg: 'none', kid: present.jwk.kid, typ: 'JWT' })
        const input = `${encode({ alg: 'HS256', kid: present.jwk.kid, typ: 'JWT' })}.${encode(claims)}`
        const mac = createHmac('sha256', JSON.stringify(present.jwk)).update(input)
        return [`${none}.${encode(claims)}.`, `${input}.${mac.digest('base64url')}`]
      },
    ],
  ])('fails for a token %s', async (_, toTokens) => {
    const tokens = toTokens()
    const results = await Promise.all(tokens.map((one) => run(program, one)))
    expect(results).toEqual(tokens.map(() => null))
  })

  it('fails for another tenant, audience or nonce', async () => {
    const asked = [{ tenant: 'evil' }, { audience: 'login' }, { nonce: 'n-2' }]
    const results = await Promise.all(asked.map((one) => run(program, token, one)))
    expect(results).toEqual([null, null, null])
  })
})

it('there is an example in each of the nine languages, and in Node', () => {
  const endings = readdirSync(examples).map((name) => name.split('.').at(-1))
  expect(endings.sort()).toEqual(
    ['cs', 'dart', 'go', 'java', 'kt', 'mjs', 'php', 'py', 'rb', 'swift'].sort(),
  )
})
