/** Keys of the fleet's random numbers: the same seed is the same phone with the same keys. */
import { createECDH, createPrivateKey, createPublicKey } from 'node:crypto'
import type { Random } from '../../../deploy/fleet/phones/random.ts'
import type { KeyPair } from './make-certificate.ts'

const curves = {
  'P-256': { name: 'prime256v1', bytes: 32 },
  'P-384': { name: 'secp384r1', bytes: 48 },
} as const

/** Makes a key that depends on the random numbers alone. Signatures with it are random still. */
export function makeSeededKey(random: Random, curve: keyof typeof curves = 'P-256'): KeyPair {
  const { name, bytes } = curves[curve]
  const secret = Buffer.from(random.hex(2 * bytes), 'hex')
  // Below the order of either curve, whose first bytes are ff.
  secret[0] = 1
  const exchange = createECDH(name)
  exchange.setPrivateKey(secret)
  const point = exchange.getPublicKey()
  const toText = (part: Uint8Array) => Buffer.from(part).toString('base64url')
  const jwk = {
    kty: 'EC',
    crv: curve,
    d: toText(secret),
    x: toText(point.subarray(1, 1 + bytes)),
    y: toText(point.subarray(1 + bytes)),
  }
  const privateKey = createPrivateKey({ key: jwk, format: 'jwk' })
  return { privateKey, publicKey: createPublicKey(privateKey) }
}
