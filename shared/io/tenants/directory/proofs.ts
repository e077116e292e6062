/**
 * Proofs of origin: a MAC under a key that is derived from MASTER_KEY for one purpose. The key of a
 * purpose is enough to create and check its proofs, and reveals nothing of MASTER_KEY. A proof
 * contains the key's short id, so that two keys can be in use while one replaces the other.
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

export type Prover = {
  /**
   * @param context what else the proof binds, such as a key and a revision
   * @returns `p1.<key id>.<mac>`, base64url parts
   */
  prove: (context: readonly (string | number)[], data: Uint8Array | string) => string
  /** Whether a proof was made for this context and data under a configured key. */
  isProven: (
    proof: string,
    context: readonly (string | number)[],
    data: Uint8Array | string,
  ) => boolean
  /** The id of the key that proves. */
  keyId: string
}

const keyBytes = 32

/** The key of a purpose. @param masterKey 32 bytes in base64 @returns 32 bytes in base64 */
export function deriveKey(masterKey: string, purpose: ProofPurpose): string {
  const info = `device-intelligence ${purpose} v1`
  const key = hkdfSync('sha256', Buffer.from(masterKey, 'base64'), '', info, keyBytes)
  return Buffer.from(key).toString('base64')
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
function mac(key: Buffer, context: readonly (string | number)[], data: Uint8Array | string) {
  return createHmac('sha256', key)
    .update(`${JSON.stringify(context)}\n`)
    .update(data)
    .digest()
}

function toKeyId(key: Buffer): string {
  return hash('sha256', Buffer.concat([Buffer.from('proof-key-id:'), key]), 'base64url').slice(0, 8)
}

/** A text with its proof before it, on a line of its own. */
export function attachProof(
  prover: Prover,
  context: readonly (string | number)[],
  text: string,
): string {
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
  return version === 'p1' && id !== undefined && text !== undefined ? id : null
}
