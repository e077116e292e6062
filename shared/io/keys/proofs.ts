/**
 * Proofs of origin: a MAC under a key that is derived from another one for one purpose. The key of
 * a purpose is enough to create and check its proofs, and reveals nothing of the key above it. A
 * proof contains the key's short id, so that two keys can be in use while one replaces the other.
 * What the console alone may say is signed instead (see signatures.ts).
 */
import { createHmac, hash, hkdfSync, timingSafeEqual } from 'node:crypto'

/** The purpose of a key. Purposes have independent keys. */
export type ProofPurpose =
  | 'directory entry'
  | 'edge announcement'
  | 'edge report'
  | 'telemetry batch'
  | 'request log'
  | 'removal'
  | 'console analyst'
  | 'sign-in attempt'

/** What a derived key is for. */
export type KeyPurpose =
  | ProofPurpose
  | 'directory signature'
  | 'edge'
  | 'hmac secret'
  | 'install root'
  | 'install challenge'
  | 'play keys'
  | 'address key'
  | 'verdict key'
  | 'webhook secret'
  | 'totp secret'
  | 'erasure subject'
  | 'rotated credentials'

/** What else a proof binds, such as a key and a revision. */
export type ProofContext = readonly (string | number)[]

export type Verifier = {
  /** Whether a proof was made for this context and data under a configured key. */
  isProven: (proof: string, context: ProofContext, data: Uint8Array | string) => boolean
  /** The id of the key that proves now. */
  readonly keyId: string
}

export type Prover = Verifier & {
  /** @returns `<form>.<key id>.<proof>`, base64url parts; the form is `p1`, or `s1` if signed */
  prove: (context: ProofContext, data: Uint8Array | string) => string
}

const keyBytes = 32

/** The key of a purpose. @param key 32 bytes in base64 @returns 32 bytes in base64 */
export function deriveKey(key: string, purpose: KeyPurpose): string {
  const info = `device-intelligence ${purpose} v1`
  const derived = hkdfSync('sha256', Buffer.from(key, 'base64'), '', info, keyBytes)
  return Buffer.from(derived).toString('base64')
}

/** @param keys of one purpose, 32 bytes each in base64; the first one proves, all of them check */
export function createProver(keys: readonly [string, ...string[]]): Prover {
  const held = new Map(
    keys.map((text) => {
      const key = Buffer.from(text, 'base64')
      return [toKeyId(key), key] as const
    }),
  )
  const [[keyId, key]] = held as unknown as [[string, Buffer]]
  return {
    keyId,
    prove: (context, data) => `p1.${keyId}.${mac(key, context, data).toString('base64url')}`,
    isProven: (proof, context, data) => {
      const [version, id = '', text = '', ...rest] = proof.split('.')
      const known = held.get(id)
      if (version !== 'p1' || known === undefined || rest.length > 0) return false
      const given = Buffer.from(text, 'base64url')
      const right = mac(known, context, data)
      return given.length === right.length && timingSafeEqual(given, right)
    },
  }
}

/** JSON has no line break of its own, so context and data cannot be confused. */
export const toProvenHead = (context: ProofContext) => `${JSON.stringify(context)}\n`

function mac(key: Buffer, context: ProofContext, data: Uint8Array | string) {
  return createHmac('sha256', key).update(toProvenHead(context)).update(data).digest()
}

function toKeyId(key: Buffer): string {
  return hash('sha256', Buffer.concat([Buffer.from('proof-key-id:'), key]), 'base64url').slice(0, 8)
}

/** @returns a verifier that takes what any of these does; its key is the first one's */
export function anyOf(first: Verifier, ...others: readonly Verifier[]): Verifier {
  const all = [first, ...others]
  return {
    keyId: first.keyId,
    isProven: (proof, context, data) => all.some((one) => one.isProven(proof, context, data)),
  }
}

/** A text with its proof before it, on a line of its own. */
export function attachProof(prover: Prover, context: ProofContext, text: string): string {
  return `${prover.prove(context, text)}\n${text}`
}

/** The two parts of a text with a proof; one without a line break has no proof. */
export function splitProof(whole: string): { proof: string; text: string } {
  const at = whole.indexOf('\n')
  return at < 0
    ? { proof: '', text: whole }
    : { proof: whole.slice(0, at), text: whole.slice(at + 1) }
}

/** The id of the key that a proof names, or null when the text is none. */
export function toProvingKeyId(proof: string): string | null {
  const [version, id, text] = proof.split('.')
  const isProof = version === 'p1' || version === 's1'
  return isProof && id !== undefined && text !== undefined ? id : null
}
