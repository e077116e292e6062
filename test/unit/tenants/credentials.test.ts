// Credentials: formats that clients may rely on, and keys that cannot be confused or forged.
import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  parseApiKey,
  toApiKey,
  toHmacSecret,
  toLast4,
  toWebhookSecret,
} from '#shared/core/tenants/credentials.ts'

const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 })
const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const environments = fc.constantFrom('live' as const, 'sandbox' as const)

describe('API keys', () => {
  it('have their golden spelling', () => {
    expect(toApiKey('live', new Uint8Array(32))).toBe(
      'dpk_live_00000000000000000000000000000000000000000003Glraa',
    )
    const ones = new Uint8Array(32).fill(0xff)
    expect(toApiKey('sandbox', ones)).toBe(
      'dpk_sandbox_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp13wHUjg',
    )
  })

  it('end in the standard CRC-32', () => {
    fc.assert(
      fc.property(bytes32, (bytes) => {
        const key = toApiKey('live', bytes)
        let checksum = 0n
        for (const digit of key.slice(-6)) checksum = checksum * 62n + BigInt(digits.indexOf(digit))
        expect(checksum).toBe(BigInt(crc32(key.slice(0, -6))))
      }),
    )
  })

  it('have a fixed width and decode to their environment and hash, for any bytes', () => {
    fc.assert(
      fc.property(environments, bytes32, (environment, bytes) => {
        const key = toApiKey(environment, bytes)
        expect(key).toMatch(new RegExp(`^dpk_${environment}_[0-9A-Za-z]{49}$`))
        const parsed = parseApiKey(key)!
        expect(parsed.environment).toBe(environment)
        expect(parsed.hash.equals(hash('sha256', key, 'buffer'))).toBe(true)
      }),
    )
  })

  it('are different for different bytes', () => {
    fc.assert(
      fc.property(bytes32, bytes32, (a, b) => {
        fc.pre(Buffer.compare(a, b) !== 0)
        expect(toApiKey('live', a)).not.toBe(toApiKey('live', b))
      }),
    )
  })

  it('are rejected with any one character changed, dropped or added', () => {
    const key = toApiKey('live', randomBytes(32))
    for (let at = 0; at < key.length; at++) {
      for (const other of 'A0z_-') {
        if (key[at] === other) continue
        expect(
          parseApiKey(key.slice(0, at) + other + key.slice(at + 1)),
          `${key} at ${at}`,
        ).toBeNull()
      }
      expect(parseApiKey(key.slice(0, at) + key.slice(at + 1))).toBeNull()
      expect(parseApiKey(`${key.slice(0, at)}0${key.slice(at)}`)).toBeNull()
    }
  })

  it('cannot change their environment', () => {
    const key = toApiKey('sandbox', randomBytes(32))
    expect(parseApiKey(key.replace('sandbox', 'live'))).toBeNull()
  })

  it('are rejected without an exception, for any text', () => {
    fc.assert(fc.property(fc.string(), (text) => parseApiKey(text) === null))
    for (const text of ['', 'dpk_live_', ' ', `${toApiKey('live', randomBytes(32))}\n`]) {
      expect(parseApiKey(text)).toBeNull()
    }
  })
})

describe('secrets', () => {
  it('have the documented spelling', () => {
    const bytes = Buffer.alloc(32, 0xfb)
    expect(toHmacSecret(bytes)).toBe('-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_s')
    expect(toWebhookSecret(bytes)).toBe('whsec_+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/s=')
    fc.assert(
      fc.property(bytes32, (random) => {
        expect(toHmacSecret(random)).toMatch(/^[A-Za-z0-9_-]{43}$/)
        const key = toWebhookSecret(random).replace(/^whsec_/, '')
        expect(Buffer.from(key, 'base64').equals(random)).toBe(true)
      }),
    )
  })

  it('reject too little randomness', () => {
    for (const make of [toHmacSecret, toWebhookSecret, (b: Buffer) => toApiKey('live', b)]) {
      expect(() => make(Buffer.alloc(31))).toThrow(RangeError)
    }
  })

  it('are shown to operators as four characters', () => {
    expect(toLast4('whsec_AAAAAAAAWXYZ=')).toBe('WXYZ')
    expect(toLast4('dpk_live_abcd')).toBe('abcd')
  })
})
