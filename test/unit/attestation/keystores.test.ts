/** The simulated keystores make what genuine phones make: the verifiers of the service say so. */
import { createHash, createPublicKey, verify } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { checkAppAttest } from '#shared/core/attestation/app-attest.ts'
import { checkAssertion } from '#shared/core/attestation/app-attest-assertion.ts'
import type { AttestedApp } from '#shared/core/attestation/apps.ts'
import { checkKeyAttestation } from '#shared/core/attestation/key-attestation.ts'
import { checkPlayIntegrity } from '#shared/core/attestation/play-integrity.ts'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import {
  type AndroidKeystoreOptions,
  createAndroidKeystore,
  createFactory,
} from '../../support/attestation/android-keystore.ts'
import { createAppleEnclave } from '../../support/attestation/apple-enclave.ts'
import { testSigner, toRootKey } from '../../support/attestation/make-android-chain.ts'
import { makeKey } from '../../support/attestation/make-certificate.ts'
import { makePlayAccount } from '../../support/attestation/make-play-token.ts'
import { createPlayIntegrity, toConsoleKeys } from '../../support/attestation/play-integrity.ts'
import { makeSeededKey } from '../../support/attestation/seeded-key.ts'
import { toPublicKey } from '../../support/attestation/vectors.ts'

const clock = Date.UTC(2026, 10, 27)
const nowMs = () => clock
const seed = 7
const root = { key: makeSeededKey(createRandom(1, 'root'), 'P-384'), name: 'Test Android root' }
const challenge = createHash('sha256').update('challenge').digest()
const apps: AttestedApp[] = [
  { platform: 'android', id: 'com.example.bank', signers: [testSigner.toString('hex')] },
  { platform: 'ios', id: 'com.example.bank', team: 'ABCDE12345', allowsDevelopment: false },
]

const checkChain = (chain: Buffer[]) => {
  const judging = { statusList: null, nowMs: clock, apps, challenge, roots: [toRootKey(root)] }
  return checkKeyAttestation({ chain, ...judging })
}

describe('an Android keystore', () => {
  const factory = createFactory(root, seed, 'pixel')
  const make = (more: Partial<AndroidKeystoreOptions> = {}) =>
    createAndroidKeystore({ root, from: factory, deviceId: 'd-1', seed, nowMs, ...more })

  it.each([
    ['of a factory', {}, null, 'hardware'],
    ['that was provisioned', { from: 'rkp' }, null, 'hardware'],
    ['with a StrongBox', { level: 'strongbox' }, null, 'strongbox'],
    ['that names its model', { model: 'Pixel 9' }, null, 'hardware'],
    ['of an unlocked phone', { bootloader: 'unlocked' }, 'bootloader_unlocked', 'hardware'],
    ['of an emulator', { level: 'software' }, 'software_key', 'software'],
    ['of another app', { packageName: 'com.other' }, 'app_unknown', 'hardware'],
    ['of a repackaged app', { signer: Buffer.alloc(32) }, 'app_signer_unknown', 'hardware'],
  ] as const)('%s attests keys', (_, more, reason, level) => {
    const { chain } = make(more as Partial<AndroidKeystoreOptions>).attestKey(challenge)
    expect(checkChain(chain)).toMatchObject({
      verdict: reason === null ? 'verified' : 'rejected',
      reason,
      level,
    })
  })

  it('names its model, and how it was provisioned', () => {
    const { facts } = checkChain(make({ model: 'Pixel 9', from: 'rkp' }).attestKey(challenge).chain)
    expect(facts).toMatchObject({
      provisioning: 'remote',
      hardware_enforced: { attestation_id_model: 'Pixel 9' },
    })
  })

  it('attests a new key each time, which signs', () => {
    const keystore = make()
    const [first, second] = [keystore.attestKey(challenge), keystore.attestKey(challenge)]
    expect(first.publicKey).not.toBe(second.publicKey)
    expect(checkChain(first.chain).facts.public_key ?? first.publicKey).toBe(first.publicKey)
    const body = Buffer.from('a body')
    const verifies = (key: string) => verify('sha256', body, toPublicKey(key), first.sign(body))
    expect([verifies(first.publicKey), verifies(second.publicKey)]).toEqual([true, false])
    const leaf = createPublicKey({
      key: Buffer.from(first.publicKey, 'base64'),
      format: 'der',
      type: 'spki',
    })
    expect(leaf.asymmetricKeyDetails?.namedCurve).toBe('prime256v1')
  })

  it('shares its issuer with the phones of its factory alone', () => {
    const issuer = (more: Partial<AndroidKeystoreOptions>) =>
      make(more).attestKey(challenge).chain[1]!.toString('hex')
    expect(issuer({ deviceId: 'd-2' })).toBe(issuer({}))
    expect(issuer({ from: createFactory(root, seed, 'galaxy') })).not.toBe(issuer({}))
    const [one, other] = [issuer({ from: 'rkp' }), issuer({ from: 'rkp', deviceId: 'd-2' })]
    expect(one).not.toBe(other)
  })

  it('has the same keys with the same seed', () => {
    const keyOf = (more: Partial<AndroidKeystoreOptions>) =>
      make(more).attestKey(challenge).publicKey
    expect(keyOf({})).toBe(keyOf({}))
    expect(keyOf({ seed: 8 })).not.toBe(keyOf({}))
    expect(keyOf({ deviceId: 'd-2' })).not.toBe(keyOf({}))
  })
})

describe('a Secure Enclave', () => {
  const apple = { key: makeKey('P-384'), name: 'Test Apple root' }
  const appId = 'ABCDE12345.com.example.bank'
  const make = () => createAppleEnclave({ root: apple, appId, deviceId: 'd-1', seed, nowMs })

  it('attests its key', () => {
    const enclave = make()
    const check = checkAppAttest({
      attestation: enclave.attest(challenge),
      keyId: Buffer.from(enclave.keyId, 'base64'),
      challenge,
      apps,
      roots: [toRootKey(apple)],
      nowMs: clock,
    })
    expect(check).toMatchObject({ verdict: 'verified', level: 'hardware' })
    expect(make().keyId).toBe(enclave.keyId)
  })

  it('counts its assertions', () => {
    const enclave = make()
    const body = Buffer.from('a body')
    const counterOf = (assertion: Buffer) => {
      const publicKey = toPublicKey(enclave.publicKey)
      const check = checkAssertion({ assertion, publicKey, clientData: body, apps })
      expect(check.verdict).toBe('verified')
      return check.facts.counter
    }
    expect([1, 2].map(() => counterOf(enclave.assert(body)))).toEqual([1, 2])
    expect(counterOf(enclave.assert(body, 1))).toBe(1)
  })
})

it('Play Integrity makes tokens for a challenge and for a body', async () => {
  const account = makePlayAccount()
  const play = createPlayIntegrity({
    account,
    packageName: 'com.example.bank',
    device: ['MEETS_BASIC_INTEGRITY'],
    nowMs,
  })
  const { decryption_key, verification_key } = toConsoleKeys(account)
  const keys = {
    decryptionKey: Buffer.from(decryption_key, 'base64'),
    verificationKey: toPublicKey(verification_key),
  }
  const body = Buffer.from('a body')
  const check = (token: string, nonce: Buffer) =>
    checkPlayIntegrity({ token, keys, nonce, apps, environment: 'live', nowMs: clock })
  const verified = { verdict: 'verified', level: 'software' }
  expect(await check(await play.attest(challenge), challenge)).toMatchObject(verified)
  const hash = createHash('sha256').update(body).digest()
  expect(await check(await play.prove(body), hash)).toMatchObject(verified)
})
