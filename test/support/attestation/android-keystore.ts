/**
 * A simulated Android keystore: it makes keys and attests them, as the KeyStore of a phone does,
 * with certificates of a factory or of remote provisioning under a root of our own.
 */
import { sign } from 'node:crypto'
import { createRandom, type Random } from '../../../deploy/fleet/phones/random.ts'
import { explicit, octets } from './der.ts'
import {
  type Issuing,
  makeChain,
  makeIssuing,
  makeKeyDescription,
  provisioned,
  type TestRoot,
  testSigner,
} from './make-android-chain.ts'
import { type KeyPair, toKeyInfo } from './make-certificate.ts'
import { makeSeededKey } from './seeded-key.ts'

const day = 86_400_000

/** Phones of one factory have its certificates, and the same issuer in every chain. */
export type Factory = { kind: 'factory'; issuing: Issuing }

/** Makes the certificates of a factory. `seed` and `name` decide its keys and serials. */
export function createFactory(root: TestRoot, seed: number, name: string): Factory {
  return { kind: 'factory', issuing: issue(root, createRandom(seed, `factory:${name}`), {}) }
}

function issue(root: TestRoot, random: Random, issuer: Parameters<typeof makeIssuing>[2]): Issuing {
  const toSerial = () => BigInt(`0x1${random.hex(30)}`)
  const batch = {
    issuer: { name: `Issuer ${random.hex(8)}`, serial: toSerial() },
    intermediate: { name: `Intermediate ${random.hex(8)}`, serial: toSerial() },
  }
  return makeIssuing(root, batch, issuer, () => makeSeededKey(random))
}

export type AndroidKeystoreOptions = {
  root: TestRoot
  /** Certificates of a factory; `rkp` for one of its own that a server issued for two months. */
  from: Factory | 'rkp'
  /** Unique among the phones of a seed. */
  deviceId: string
  seed: number
  /** Named in the attestation, as phones do on request; left out unless given. */
  model?: string
  bootloader?: 'locked' | 'unlocked'
  level?: 'strongbox' | 'hardware' | 'software'
  packageName?: string
  /** SHA-256 of the certificate that signed the app. */
  signer?: Buffer
  /** Year and month, such as 202610. */
  patchLevel?: number
  nowMs: () => number
}

/** A key in the keystore: what attests it, and what it signs. */
export type AndroidKey = {
  /** Leaf first, in DER. */
  chain: Buffer[]
  /** SubjectPublicKeyInfo in base64. */
  publicKey: string
  /** ECDSA with SHA-256, in DER. */
  sign: (data: Uint8Array) => Buffer
}

export type AndroidKeystore = {
  /** Makes a new key and attests it for a challenge. */
  attestKey: (challenge: Uint8Array) => AndroidKey
}

const levels = { software: 0, hardware: 1, strongbox: 2 } as const

export function createAndroidKeystore(options: AndroidKeystoreOptions): AndroidKeystore {
  const { root, from, seed, deviceId, nowMs, model } = options
  const { bootloader = 'locked', level = 'hardware', packageName, patchLevel } = options
  const random = createRandom(seed, `keystore:${deviceId}`)
  const issuing = from === 'rkp' ? provision(root, random, nowMs()) : from.issuing
  const isLocked = bootloader === 'locked'
  const attest = (leafKey: KeyPair, challenge: Buffer): Buffer[] => {
    const description = makeKeyDescription({
      challenge,
      level: levels[level],
      isLocked,
      bootState: isLocked ? 0 : 2,
      signer: options.signer ?? testSigner,
      more: model === undefined ? [] : [explicit(717, octets(Buffer.from(model)))],
      ...(packageName === undefined ? {} : { packageName }),
      ...(patchLevel === undefined ? {} : { patchLevel }),
    })
    return makeChain({ ...issuing, leafKey }, { description })
  }
  return {
    attestKey: (challenge) => {
      const leafKey = makeSeededKey(random)
      return {
        chain: attest(leafKey, Buffer.from(challenge)),
        publicKey: toKeyInfo(leafKey.publicKey).toString('base64'),
        sign: (data) => sign('sha256', data, leafKey.privateKey),
      }
    },
  }
}

const provision = (root: TestRoot, random: Random, nowMs: number): Issuing =>
  issue(root, random, {
    fromMs: nowMs - 7 * day,
    toMs: nowMs + 53 * day,
    extensions: [provisioned],
  })
