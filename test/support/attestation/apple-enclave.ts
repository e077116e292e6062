/** A simulated Secure Enclave with App Attest: one attested key, and assertions that count. */
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import type { TestRoot } from './make-android-chain.ts'
import {
  development,
  makeAssertion,
  makeAttestation,
  production,
  toKeyId,
} from './make-app-attest.ts'
import { toKeyInfo } from './make-certificate.ts'
import { makeSeededKey } from './seeded-key.ts'

const day = 86_400_000

export type AppleEnclaveOptions = {
  root: TestRoot
  /** `TEAM.BUNDLE` */
  appId: string
  /** Unique among the phones of a seed. */
  deviceId: string
  seed: number
  environment?: 'production' | 'development'
  nowMs: () => number
}

export type AppleEnclave = {
  /** Base64, as `generateKey` returns it. */
  keyId: string
  /** SubjectPublicKeyInfo in base64. */
  publicKey: string
  /** The object of `attestKey`, for SHA-256 of the challenge. */
  attest: (challenge: Uint8Array) => Buffer
  /**
   * The assertion of `generateAssertion`, for SHA-256 of the body. Its counter rises with each.
   * @param counter another one, as a copy of the enclave would have
   */
  assert: (body: Uint8Array, counter?: number) => Buffer
}

export function createAppleEnclave(options: AppleEnclaveOptions): AppleEnclave {
  const { root, appId, deviceId, seed, nowMs } = options
  const key = makeSeededKey(createRandom(seed, `enclave:${deviceId}`))
  const environment = options.environment === 'development' ? development : production
  let assertions = 0
  return {
    keyId: toKeyId(key.publicKey).toString('base64'),
    publicKey: toKeyInfo(key.publicKey).toString('base64'),
    attest: (challenge) => {
      const common = { appId, key, environment, fromMs: nowMs() - day }
      return makeAttestation(root, { ...common, challenge: Buffer.from(challenge) }).attestation
    },
    assert: (body, counter) => {
      assertions += 1
      return makeAssertion({
        appId,
        clientData: Buffer.from(body),
        privateKey: key.privateKey,
        counter: counter ?? assertions,
      })
    },
  }
}
