/** The two keys of the Play Console: as an operator gives them, and as tokens are opened. */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { decodeBase64 } from './encodings.ts'

export type PlayKeys = {
  /** Play's decryption key: 32 bytes. */
  decryptionKey: Uint8Array
  /** Play's verification key: a public key of P-256. */
  verificationKey: KeyObject
}

/** As the Play Console shows them, in base64. */
export type PlayKeyTexts = { decryption_key: string; verification_key: string }

const decryptionKeyBytes = 32
/** SubjectPublicKeyInfo of P-256 has 91 bytes: 128 characters leave room for padding alone. */
const verificationKeyCharactersMax = 128

/**
 * @param text 32 bytes in base64
 * @returns null when it is none
 */
export function readDecryptionKey(text: string): Buffer | null {
  const bytes = decodeBase64(text, verificationKeyCharactersMax)
  return bytes?.length === decryptionKeyBytes ? bytes : null
}

/**
 * @param text SubjectPublicKeyInfo of P-256 in base64
 * @returns null when it is none
 */
export function readVerificationKey(text: string): KeyObject | null {
  const der = decodeBase64(text, verificationKeyCharactersMax)
  if (der === null) return null
  try {
    const key = createPublicKey({ key: der, format: 'der', type: 'spki' })
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : null
  } catch {
    return null
  }
}

/** @returns null when one of them is no such key */
export function readPlayKeys(texts: PlayKeyTexts): PlayKeys | null {
  const decryptionKey = readDecryptionKey(texts.decryption_key)
  const verificationKey = readVerificationKey(texts.verification_key)
  return decryptionKey === null || verificationKey === null
    ? null
    : { decryptionKey, verificationKey }
}
