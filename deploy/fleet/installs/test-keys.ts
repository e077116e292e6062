/** Reads the root keys of the local stack, which its edges take for sandbox tenants. */
import { createPrivateKey, createPublicKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { KeyPair } from '../../../test/support/attestation/make-certificate.ts'
import { type TestRootKeys, testRootNames } from '../../local/test-roots.ts'
import type { TestKeys } from './cast.ts'

function toPair(base64: string): KeyPair {
  const key = Buffer.from(base64, 'base64')
  const privateKey = createPrivateKey({ key, format: 'der', type: 'pkcs8' })
  return { privateKey, publicKey: createPublicKey(privateKey) }
}

/** @param file the path in `stack.json` */
export function readTestKeys(file: string): TestKeys {
  const keys = JSON.parse(readFileSync(file, 'utf8')) as TestRootKeys
  return {
    android: { key: toPair(keys.android_root), name: testRootNames.android },
    apple: { key: toPair(keys.apple_root), name: testRootNames.apple },
    play: {
      decryptionKey: Buffer.from(keys.play_decryption_key, 'base64'),
      signing: toPair(keys.play_signing_key),
    },
  }
}
