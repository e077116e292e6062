/**
 * The credentials of a tenant: how each is made from random bytes, and how an API key is parsed. A
 * key ends in a checksum, so a mistyped or invented key is refused without a database query.
 */
import { hash } from 'node:crypto'

export type Environment = 'live' | 'sandbox'

/** What is kept of an API key: its SHA-256, and what people know it by. */
export type StoredKey = { hash: Buffer; prefix: string; last4: string }

/** Bytes of randomness in every credential. */
export const credentialBytes = 32

const base62Digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 62^43 is just above 2^256, 62^6 above 2^32: fixed widths that hold every value. */
const randomCharacters = 43
const checksumCharacters = 6
const apiKeyPattern = /^(dpk_(live|sandbox)_[0-9A-Za-z]{43})([0-9A-Za-z]{6})$/

/** The prefix of a tenant's API keys. */
export function toApiKeyPrefix(environment: Environment): string {
  return `dpk_${environment}_`
}

/**
 * Makes a public API key: prefix, 43 base62 characters of randomness, 6 of CRC-32 over both.
 * @param random 32 random bytes
 * @throws RangeError for another length
 */
export function toApiKey(environment: Environment, random: Uint8Array): string {
  const text = toApiKeyPrefix(environment) + toBase62(toInteger(random), randomCharacters)
  return text + toChecksum(text)
}

/**
 * Parses a public API key.
 * @returns its environment and the SHA-256 under which it is stored; null when its form or checksum
 *   is wrong
 */
export function parseApiKey(text: string): { environment: Environment; hash: Buffer } | null {
  const match = apiKeyPattern.exec(text)
  if (match === null || match[3] !== toChecksum(match[1]!)) return null
  return { environment: match[2] as Environment, hash: hashApiKey(text) }
}

/** The stored hash of a key. 256 random bits need no slow hash. */
export function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer')
}

/** An HMAC secret: 32 random bytes as 43 characters of base64url. */
export function toHmacSecret(random: Uint8Array): string {
  return requireLength(random).toString('base64url')
}

/** A webhook signing secret: `whsec_` and the base64 of 32 random bytes (50 characters). */
export function toWebhookSecret(random: Uint8Array): string {
  return `whsec_${requireLength(random).toString('base64')}`
}

/** The last four characters, which operators may see: 24 of 256 bits. */
export function toLast4(secret: string): string {
  // Base64 pads 32 bytes with one '=', which would use up one of the four.
  return secret.replace(/=+$/, '').slice(-4)
}

function requireLength(random: Uint8Array): Buffer {
  if (random.length !== credentialBytes) {
    throw new RangeError(`a credential takes ${credentialBytes} random bytes`)
  }
  return Buffer.from(random.buffer, random.byteOffset, random.length)
}

function toInteger(random: Uint8Array): bigint {
  return BigInt(`0x${requireLength(random).toString('hex')}`)
}

function toBase62(value: bigint, characters: number): string {
  let text = ''
  for (let rest = value, n = 0; n < characters; n++, rest /= 62n) {
    text = base62Digits[Number(rest % 62n)] + text
  }
  return text
}

function toChecksum(text: string): string {
  return toBase62(BigInt(crc32(text)), checksumCharacters)
}

const crcTable = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1
  return value
})

/** CRC-32 of ISO 3309, as in zip and PNG. The text is ASCII. */
function crc32(text: string): number {
  let crc = 0xffffffff
  for (let n = 0; n < text.length; n++) {
    crc = crcTable[(crc ^ text.charCodeAt(n)) & 0xff]! ^ (crc >>> 8)
  }
  return (crc ^ 0xffffffff) >>> 0
}
