/**
 * Signatures of the console: Ed25519 with a key that is derived from MASTER_KEY. Whoever checks has
 * the public half, which proves nothing. One check takes about 0.1 ms.
 */
import { createPrivateKey, createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto'
import { deriveKey, type ProofContext, type Prover, toProvenHead, type Verifier } from './proofs.ts'

/** What stands before the 32 bytes of a key in DER: RFC 8410. */
const privateHead = Buffer.from('302e020100300506032b657004220420', 'hex')
const publicHead = Buffer.from('302a300506032b6570032100', 'hex')

/** The public half of the signing key of a master key. @returns 32 bytes in base64 */
export function toDirectoryPublicKey(masterKey: string): string {
  return toRawPublic(toSigningKey(masterKey)).toString('base64')
}

/** @param publicKeys 32 bytes each in base64; the console signs with the first one at present */
export function createVerifier(publicKeys: readonly [string, ...string[]]): Verifier {
  const held = new Map<string, KeyObject>()
  for (const text of publicKeys) {
    const raw = Buffer.from(text, 'base64')
    const key = Buffer.concat([publicHead, raw])
    held.set(toKeyId(raw), createPublicKey({ key, format: 'der', type: 'spki' }))
  }
  return {
    keyId: toKeyId(Buffer.from(publicKeys[0], 'base64')),
    isProven: (proof, context, data) => {
      const [form, id = '', text = '', ...rest] = proof.split('.')
      const key = held.get(id)
      if (form !== 's1' || key === undefined || rest.length > 0) return false
      return verify(null, toSigned(context, data), key, Buffer.from(text, 'base64url'))
    },
  }
}

/** @param masterKeys 32 bytes each in base64; the first one signs, all of them check */
export function createSigner(masterKeys: readonly [string, ...string[]]): Prover {
  const [first, ...others] = masterKeys
  const verifier = createVerifier([
    toDirectoryPublicKey(first),
    ...others.map(toDirectoryPublicKey),
  ])
  const key = toSigningKey(first)
  return {
    ...verifier,
    prove: (context, data) => {
      const signature = sign(null, toSigned(context, data), key)
      return `s1.${verifier.keyId}.${signature.toString('base64url')}`
    },
  }
}

function toSigningKey(masterKey: string): KeyObject {
  const seed = Buffer.from(deriveKey(masterKey, 'directory signature'), 'base64')
  const key = Buffer.concat([privateHead, seed])
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' })
}

const toRawPublic = (key: KeyObject) =>
  createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(publicHead.length)

const toSigned = (context: ProofContext, data: Uint8Array | string) =>
  Buffer.concat([Buffer.from(toProvenHead(context)), Buffer.from(data)])

function toKeyId(publicKey: Buffer): string {
  const named = Buffer.concat([Buffer.from('signature-key-id:'), publicKey])
  return hash('sha256', named, 'base64url').slice(0, 8)
}
