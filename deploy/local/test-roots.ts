// Roots of attestation that only this stack knows. Its edges take them for sandbox tenants, so that
// simulated phones can attest their keys. The private keys are in the data folder, for `di fleet`.

import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { readJson, writeJson } from './stack/state-files.ts'

/** Private keys in PKCS #8, base64; Play's decryption key as it is, base64. */
export type TestRootKeys = {
  android_root: string
  apple_root: string
  play_decryption_key: string
  play_signing_key: string
}

export const testRootNames = {
  android: 'Local stack Android root',
  apple: 'Local stack Apple root',
} as const

/** Where the private keys are. */
export const testKeysPath = (dataDir: string): string => join(dataDir, 'attestation-keys.json')

const makePrivateKey = (namedCurve: string): string => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve })
  return privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')
}

/** The public key of a private one: SubjectPublicKeyInfo in base64. */
const toPublicKeyInfo = (privateKey: string): string => {
  const key = Buffer.from(privateKey, 'base64')
  const publicKey = createPublicKey(createPrivateKey({ key, format: 'der', type: 'pkcs8' }))
  return publicKey.export({ format: 'der', type: 'spki' }).toString('base64')
}

/**
 * Makes the roots at the first start, and writes what the edges read.
 * @returns the file of `ATTESTATION_TEST_ROOTS_FILE`
 */
export function openTestRoots(dataDir: string): string {
  const keysFile = testKeysPath(dataDir)
  const known = readJson<TestRootKeys>(keysFile)
  const keys = known ?? {
    android_root: makePrivateKey('P-384'),
    apple_root: makePrivateKey('P-384'),
    play_decryption_key: randomBytes(32).toString('base64'),
    play_signing_key: makePrivateKey('P-256'),
  }
  if (known === null) writeJson(keysFile, keys)
  const rootsFile = join(dataDir, 'attestation-roots.json')
  const toRoot = (name: string, key: string) => ({
    name,
    public_key: toPublicKeyInfo(key),
  })
  writeJson(rootsFile, {
    key_attestation: [toRoot(testRootNames.android, keys.android_root)],
    app_attest: [toRoot(testRootNames.apple, keys.apple_root)],
  })
  return rootsFile
}
