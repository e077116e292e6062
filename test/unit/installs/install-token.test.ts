/** Install tokens: who made one, what it says, and the key that is derived from it. */
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { appIdCharactersMax, installTokenCharactersMax } from '#shared/core/base/limits/installs.ts'
import {
  findTokenFault,
  type InstallFacts,
  makeInstallToken,
  openInstallToken,
  readInstallFacts,
  toDeviceHash,
  toInstallRoot,
} from '#shared/core/installs/install-token.ts'
import { signBody } from '#shared/core/telemetry/signature.ts'
import { decoyRoot, installRoot, rootBytes } from '../../support/installs/install-roots.ts'

const facts: InstallFacts = {
  t: 'acme',
  d: toDeviceHash('pixel-1'),
  a: 'com.acme.bank',
  p: 'key_attestation',
  v: 'verified',
  l: 'strongbox',
  r: null,
  k: 'A'.repeat(124),
  s: Array.from({ length: 3 }, () => 'i'.repeat(22)),
  f: { hardware_backed: true, os_patch_age_days: 40 },
  iat: 1_790_000_000_000,
  exp: 1_792_592_000_000,
}
const root = installRoot(7)
const { token, key } = makeInstallToken(root, facts)
function read(text: string, roots = [root]) {
  const opened = openInstallToken(text, roots, decoyRoot)
  return { opened, key: opened.key, fault: findTokenFault(opened) }
}

describe('a token', () => {
  it('says what the registration found, and has the key of its install', () => {
    const reading = read(token)
    expect(reading).toMatchObject({ fault: null, key })
    expect(readInstallFacts(reading.opened)).toEqual(facts)
    expect(key).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect(token).toMatch(/^ins1\.7\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{43}$/)
  })

  it('has a key that signs as the HMAC secret of a tenant does', () => {
    const body = '{"tenant_id":"acme"}'
    const byHand = createHmac('sha256', Buffer.from(key, 'utf8')).update(body).digest('base64')
    expect(signBody(body, key)).toBe(byHand)
  })

  it('is read with the root of its epoch, beside any other', () => {
    expect(read(token, [installRoot(8), root]).fault).toBeNull()
    expect(read(token, [root, installRoot(6)])).toMatchObject({ fault: null, key })
    expect(read(token, [installRoot(8), installRoot(6)])).toMatchObject({ fault: 'install_epoch' })
    expect(read(token, [])).toMatchObject({ fault: 'install_epoch' })
    expect(read(token, [])).not.toMatchObject({ key })
  })

  it('of another tenant has another root, and so another MAC and key', () => {
    const other = read(token, [installRoot(7, 8)])
    expect(other.fault).toBe('install_mac')
    expect(other.key).not.toBe(key)
  })

  it('has independent keys for MAC and signing', () => {
    const { tokenKey, signingKey } = toInstallRoot(1, rootBytes(1))
    expect(tokenKey.export().equals(signingKey.export())).toBe(false)
    expect(tokenKey.export().equals(rootBytes(1))).toBe(false)
  })
})

describe('a token that was changed', () => {
  const at = (index: number, letter: string) =>
    token.slice(0, index) + letter + token.slice(index + 1)

  it('counts at no place and with no other character', () => {
    let tried = 0
    for (let index = 0; index < token.length; index++) {
      for (const letter of 'A0_.=,\u00e9') {
        if (token[index] === letter) continue
        tried++
        expect(read(at(index, letter)).fault).not.toBeNull()
      }
    }
    expect(tried).toBeGreaterThan(6 * token.length)
  })

  const [form, epoch, payload, mac] = token.split('.')
  it.each<[string, string, string]>([
    ['empty', '', 'install_malformed'],
    ['of another form', `ins2.${epoch}.${payload}.${mac}`, 'install_malformed'],
    ['without an epoch', `${form}..${payload}.${mac}`, 'install_malformed'],
    ['of an epoch with a zero before it', `${form}.07.${payload}.${mac}`, 'install_malformed'],
    ['of an epoch in another spelling', `${form}.7e0.${payload}.${mac}`, 'install_malformed'],
    ['of an endless epoch', `${form}.${'7'.repeat(400)}.${payload}.${mac}`, 'install_malformed'],
    ['of another epoch', `${form}.8.${payload}.${mac}`, 'install_epoch'],
    ['without a payload', `${form}.7..${mac}`, 'install_malformed'],
    ['cut off', token.slice(0, -1), 'install_malformed'],
    ['longer', `${token}A`, 'install_malformed'],
    ['twice, as Node joins headers', `${token}, ${token}`, 'install_malformed'],
    ['with a space', ` ${token}`, 'install_malformed'],
    ['with a MAC of another payload', `${form}.7.${payload}A.${mac}`, 'install_mac'],
    ['too long', `${form}.7.${'A'.repeat(installTokenCharactersMax)}.${mac}`, 'install_malformed'],
  ])('%s does not count', (_, text, fault) => {
    expect(read(text)).toMatchObject({ fault })
    expect(read(text)).not.toMatchObject({ key })
  })

  it('never throws, whatever a header holds', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 60, unit: 'binary' }), (text) => {
        expect(read(text).fault).toBe('install_malformed')
      }),
    )
  })
})

describe('the length of a token', () => {
  const longest: InstallFacts = {
    ...facts,
    t: 't'.repeat(63),
    d: toDeviceHash('\u{1f600}'.repeat(128)),
    a: 'a'.repeat(appIdCharactersMax),
    s: Array.from({ length: 6 }, () => 'i'.repeat(22)),
    f: { hardware_backed: true, verified: true, os_patch_age_days: 40_000, debug_build: true },
  }

  it('is within its bound without the app where all else is as long as can be', () => {
    const { token: long } = makeInstallToken(root, longest)
    expect(long.length).toBeLessThanOrEqual(installTokenCharactersMax)
    const said = readInstallFacts(read(long).opened)
    expect(said).toEqual({ ...longest, a: null })
    expect(readInstallFacts(read(token).opened).a).toBe('com.acme.bank')
  })

  it('is never beyond its bound', () => {
    const f = { pi_device: Array.from({ length: 100 }, () => 'MEETS_DEVICE_INTEGRITY') }
    expect(() => makeInstallToken(root, { ...longest, f })).toThrow(RangeError)
  })
})
