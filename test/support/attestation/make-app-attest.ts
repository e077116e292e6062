/** Attestations and assertions of devices of our own making. */
import { createHash, type KeyObject, sign } from 'node:crypto'
import { encode } from 'cbor2'
import { explicit, octets, sequence } from './der.ts'
import type { TestRoot } from './make-android-chain.ts'
import {
  type CertificateOptions,
  type KeyPair,
  makeCertificate,
  makeKey,
} from './make-certificate.ts'

const sha256 = (...parts: Uint8Array[]): Buffer => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** CBOR's bytes are plain arrays of bytes: cbor2 writes a `Buffer` as what its `toJSON` gives. */
export const toCborBytes = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes)

const toBytes = (value: unknown): Buffer => Buffer.from(encode(value))

const toPoint = (key: KeyObject) => {
  const { x, y } = key.export({ format: 'jwk' })
  return { x: Buffer.from(x!, 'base64url'), y: Buffer.from(y!, 'base64url') }
}

export const toKeyId = (key: KeyObject): Buffer => {
  const { x, y } = toPoint(key)
  return sha256(Buffer.of(4), x, y)
}

/** What iOS 27 adds. */
export const extensionMap = (): Buffer =>
  toBytes(
    new Map<string, unknown>([
      ['apple_validation_category_01', Uint8Array.of(2, 0, 0, 0)],
      ['apple_bundle_version_01', '42'],
    ]),
  )

/** What a later iOS may add, and a value of another type than today's. */
export const laterMap = (): Buffer =>
  toBytes(
    new Map<string | number, unknown>([
      ['apple_validation_category_01', 'text'],
      ['apple_validation_category_02', true],
      [3, 0.5],
      ['apple_signed_at_01', new Date(0)],
    ]),
  )

export const production = Buffer.from('appattest\0\0\0\0\0\0\0', 'latin1')
export const development = Buffer.from('appattestdevelop', 'latin1')

const toHead = (appId: string, flags: number, counter: number): Buffer => {
  const tail = Buffer.alloc(5, flags)
  tail.writeUInt32BE(counter, 1)
  return Buffer.concat([sha256(Buffer.from(appId)), tail])
}

export type AttestationOptions = {
  appId: string
  challenge: Buffer
  key?: KeyPair
  /** The key that the authenticator data is about, if another. */
  credential?: KeyObject
  counter?: number
  environment?: Buffer
  tail?: Buffer
  fromMs: number
  leaf?: Partial<CertificateOptions>
  /** Replaces members of the object. */
  object?: Record<string, unknown>
}

export function makeAttestation({ key: rootKey, name }: TestRoot, options: AttestationOptions) {
  const { appId, challenge, counter = 0, environment = production } = options
  const [key, middleKey] = [options.key ?? makeKey(), makeKey('P-384')]
  const credential = options.credential ?? key.publicKey
  const { x, y } = toPoint(credential)
  const id = toKeyId(credential)
  const cose = new Map<number, unknown>([
    [1, 2],
    [3, -7],
    [-1, 1],
    [-2, toCborBytes(x)],
    [-3, toCborBytes(y)],
  ])
  const authData = Buffer.concat([
    toHead(appId, 0x40, counter),
    environment,
    Buffer.of(0, id.length),
    id,
    toBytes(cose),
    options.tail ?? Buffer.alloc(0),
  ])
  const nonce = sha256(authData, sha256(challenge))
  const leaf = makeCertificate({
    subject: toKeyId(key.publicKey).toString('hex'),
    issuer: 'Test App Attestation CA 1',
    key: key.publicKey,
    signer: middleKey.privateKey,
    fromMs: options.fromMs,
    toMs: options.fromMs + 300 * 86_400_000,
    extensions: [['1.2.840.113635.100.8.2', sequence(explicit(1, octets(nonce)))]],
    ...options.leaf,
  })
  const intermediate = makeCertificate({
    subject: 'Test App Attestation CA 1',
    issuer: name,
    key: middleKey.publicKey,
    signer: rootKey.privateKey,
    isCa: true,
  })
  const attestation = toBytes({
    fmt: 'apple-appattest',
    attStmt: {
      x5c: [leaf, intermediate].map(toCborBytes),
      receipt: toCborBytes(Buffer.from('a receipt')),
    },
    authData: toCborBytes(authData),
    ...options.object,
  })
  return { attestation, key, keyId: toKeyId(key.publicKey) }
}

export type AssertionOptions = {
  appId: string
  clientData: Buffer
  privateKey: KeyObject
  counter?: number
  flags?: number
  tail?: Buffer
}

export function makeAssertion(options: AssertionOptions): Buffer {
  const { appId, clientData, privateKey, counter = 1, flags = 0, tail = Buffer.alloc(0) } = options
  const authenticatorData = Buffer.concat([toHead(appId, flags, counter), tail])
  const nonce = sha256(authenticatorData, sha256(clientData))
  return toBytes({
    signature: toCborBytes(sign('sha256', nonce, privateKey)),
    authenticatorData: toCborBytes(authenticatorData),
  })
}
