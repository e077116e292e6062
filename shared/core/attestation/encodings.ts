/** Base64 of evidence and options, in either alphabet, and bytes as facts show them. */
import { createPublicKey, hash, type KeyObject } from 'node:crypto'
import { evidenceCharactersMax } from '../base/limits/attestation.ts'

const standard = /^[A-Za-z0-9+/]*={0,2}$/
const urlSafe = /^[A-Za-z0-9_-]*={0,2}$/

/**
 * Decodes base64 or base64url, padded or not. Texts that mix the alphabets, have characters outside
 * them, a wrong padding or spare bits, are none: one value has four spellings and no more.
 * @returns null when it is none
 */
export function decodeBase64(text: string, charactersMax = evidenceCharactersMax): Buffer | null {
  if (text.length > charactersMax) return null
  if (!standard.test(text) && !urlSafe.test(text)) return null
  const bytes = Buffer.from(text, 'base64')
  const canonical = bytes.toString('base64')
  const given = text.replaceAll('-', '+').replaceAll('_', '/')
  return given === canonical || given === canonical.replace(/=+$/, '') ? bytes : null
}

export const toBase64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')

export const sha256 = (...parts: readonly Uint8Array[]): Buffer =>
  hash('sha256', Buffer.concat(parts), 'buffer')

/**
 * Reads a public key from a file: PEM, or SubjectPublicKeyInfo in DER or in base64.
 * @returns null when it is none
 */
export function readKeyFile(bytes: Buffer): KeyObject | null {
  try {
    if (bytes.includes('-----BEGIN')) return createPublicKey(bytes)
    const der = decodeBase64(bytes.toString('latin1').trim()) ?? bytes
    return createPublicKey({ key: der, format: 'der', type: 'spki' })
  } catch {
    return null
  }
}
