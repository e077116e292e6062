import { describe, expect, it } from 'vitest'
import {
  decodePlayKeys,
  encodePlayKeys,
  findPlayKeys,
  newAppSchema,
  toSigners,
} from '#shared/core/installs/tenant-apps.ts'
import { makeKey, toKeyInfo } from '../../support/attestation/make-certificate.ts'

const digest = 'ab'.repeat(32)
const android = { platform: 'android', id: 'com.example.bank', signers: [digest] }
const ios = { platform: 'ios', id: 'com.example.bank', team: 'ABCDE12345' }
const keys = {
  decryption_key: Buffer.alloc(32, 1).toString('base64'),
  verification_key: toKeyInfo(makeKey().publicKey).toString('base64'),
}

describe('an app of a tenant', () => {
  it.each([
    ['an app for Android', android],
    ['one with Play keys', { ...android, play_keys: keys }],
    ['one whose Play keys go', { ...android, play_keys: null }],
    [
      'a digest as keytool prints it',
      { ...android, signers: [digest.match(/../g)!.join(':').toUpperCase()] },
    ],
    ['an app for iOS', ios],
    ['a bundle with hyphens', { ...ios, id: 'io.example-bank.App-2' }],
  ])('can be %s', (_, app) => {
    expect(newAppSchema.safeParse(app).success).toBe(true)
  })

  const wrongKey = toKeyInfo(makeKey('P-384').publicKey).toString('base64')
  it.each([
    ['a package of one part', { ...android, id: 'bank' }, 'id'],
    ['a package with an empty part', { ...android, id: 'com..bank' }, 'id'],
    ['a part that begins with a digit', { ...android, id: 'com.1bank' }, 'id'],
    ['a package with a space', { ...android, id: 'com.example.bank ' }, 'id'],
    ['a package of 300 characters', { ...android, id: `com.${'a'.repeat(296)}` }, 'id'],
    ['a bundle with an underscore', { ...ios, id: 'com.example_bank' }, 'id'],
    ['no signer', { ...android, signers: [] }, 'signers'],
    ['nine signers', { ...android, signers: Array(9).fill(digest) }, 'signers'],
    ['a SHA-1', { ...android, signers: ['ab'.repeat(20)] }, 'signers.0'],
    [
      'a SHA-1 in base64',
      { ...android, signers: [Buffer.alloc(20).toString('base64')] },
      'signers.0',
    ],
    ['colons in wrong places', { ...android, signers: [`abab:${'ab'.repeat(30)}`] }, 'signers.0'],
    ['a team in lower case', { ...ios, team: 'abcde12345' }, 'team'],
    ['a team of nine', { ...ios, team: 'ABCDE1234' }, 'team'],
    [
      'a decryption key of 16 bytes',
      { ...android, play_keys: { ...keys, decryption_key: Buffer.alloc(16).toString('base64') } },
      'play_keys.decryption_key',
    ],
    [
      'a verification key of another curve',
      { ...android, play_keys: { ...keys, verification_key: wrongKey } },
      'play_keys.verification_key',
    ],
    [
      'a verification key that is none',
      { ...android, play_keys: { ...keys, verification_key: 'AAAA' } },
      'play_keys.verification_key',
    ],
    ['another platform', { ...android, platform: 'windows' }, 'platform'],
  ])('cannot have %s, and the error names the field', (_, app, path) => {
    const parsed = newAppSchema.safeParse(app)
    expect(parsed.error?.issues[0]?.path.join('.')).toBe(path)
    // Keys of the Play Console are secrets.
    expect(JSON.stringify(parsed.error?.issues)).not.toContain(keys.decryption_key)
  })

  it('has its signers once, in lower case and without colons, however they were given', () => {
    const colons = digest.match(/../g)!.join(':').toUpperCase()
    const base64 = Buffer.from(digest, 'hex').toString('base64')
    expect(newAppSchema.safeParse({ ...android, signers: [base64] }).success).toBe(true)
    expect(toSigners([colons, digest, base64])).toEqual([digest])
  })
})

describe('Play keys', () => {
  it('open for the app that they were sealed for alone', () => {
    const text = encodePlayKeys('com.example.bank', keys)
    expect(decodePlayKeys('com.example.bank', text)).toEqual(keys)
    expect(decodePlayKeys('com.example.other', text)).toBeNull()
    expect(decodePlayKeys('com.example.bank', 'no JSON')).toBeNull()
  })

  it('are those of the named app, or the only ones', () => {
    const both = new Map([
      ['a.a', 1],
      ['b.b', 2],
    ])
    expect(findPlayKeys(both, 'b.b')).toBe(2)
    expect(findPlayKeys(both, 'c.c')).toBeNull()
    expect(findPlayKeys(both, null)).toBeNull()
    expect(findPlayKeys(new Map([['a.a', 1]]), null)).toBe(1)
  })
})
