/**
 * Byte scans of a body before it is parsed. `findTenant` reads unverified bytes that any sender can
 * choose, so it makes one pass without a parse, an exception or a copy. `scanBody` measures a
 * verified body. Both are exact for valid JSON; the parse that follows refuses anything else.
 */

const quote = 0x22
const backslash = 0x5c
const colon = 0x3a
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
const letterU = 0x75

const tenantKey = [...Buffer.from('tenant_id')]
/** As `tenantIdPattern`. */
const slugCharactersMax = 63

/**
 * Finds the tenant that a body names, before its signature is verified. It reads each byte at most
 * three times and stops at the first top-level `tenant_id`.
 * @param body unverified bytes; only its length and single bytes are read
 * @returns the first top-level `tenant_id` when it is a string that can be a tenant's slug, else
 *   null. A second `tenant_id` is ignored here and refused after verification.
 */
export function findTenant(body: ArrayLike<number>): string | null {
  const { length } = body
  let depth = 0
  let keyStart = -1
  let keyEnd = -1
  for (let at = 0; at < length; at++) {
    const byte = body[at]
    if (byte === quote) {
      keyStart = at + 1
      keyEnd = findStringEnd(body, keyStart)
      at = keyEnd
    } else if (byte === colon) {
      // The string before a colon is a member's key.
      if (depth === 1 && isTenantKey(body, keyStart, keyEnd)) return readSlug(body, at + 1)
      keyStart = -1
    } else if (byte === openBrace || byte === openBracket) depth++
    else if (byte === closeBrace || byte === closeBracket) depth--
  }
  return null
}

/** What `scanBody` measures. */
export type BodyScan = {
  /** Deepest nesting of objects and arrays. */
  depth: number
  /** Object members anywhere in the body. More than the parsed tree has means duplicate keys. */
  members: number
  /** Whether a `\u` escape occurs, the only way to write a lone surrogate or a hidden key. */
  unicodeEscape: boolean
}

/**
 * Measures a verified body in one pass, before it is parsed.
 * @param body at most `bodyBytesMax` bytes
 */
export function scanBody(body: Uint8Array): BodyScan {
  const scan: BodyScan = { depth: 0, members: 0, unicodeEscape: false }
  const { length } = body
  let depth = 0
  for (let at = 0; at < length; at++) {
    const byte = body[at]
    if (byte === quote) at = findStringEnd(body, at + 1, scan)
    // A colon outside a string follows a member's key.
    else if (byte === colon) scan.members++
    else if (byte === openBrace || byte === openBracket) {
      depth++
      if (depth > scan.depth) scan.depth = depth
    } else if (byte === closeBrace || byte === closeBracket) depth--
  }
  return scan
}

/**
 * @param scan records a `\u` escape, where given
 * @returns the index of the closing quote, or the body's length when there is none
 */
export function findStringEnd(body: ArrayLike<number>, start: number, scan?: BodyScan): number {
  let at = start
  let byte = body[at]
  while (byte !== quote && byte !== undefined) {
    if (byte === backslash && body[++at] === letterU && scan !== undefined) {
      scan.unicodeEscape = true
    }
    byte = body[++at]
  }
  return Math.min(at, body.length)
}

function isTenantKey(body: ArrayLike<number>, start: number, end: number): boolean {
  if (start < 0) return false
  let at = start
  for (const expected of tenantKey) {
    if (at >= end || readCharacter(body, at) !== expected) return false
    at += characterBytes(body, at)
  }
  return at === end
}

/** @param start the first byte after the colon */
function readSlug(body: ArrayLike<number>, start: number): string | null {
  let at = start
  while (isSpace(body[at])) at++
  if (body[at] !== quote) return null
  at++
  let slug = ''
  for (; body[at] !== quote; at += characterBytes(body, at)) {
    const code = readCharacter(body, at)
    if (slug.length === slugCharactersMax || !isSlugCharacter(code)) return null
    slug += String.fromCharCode(code)
  }
  return slug === '' || slug.startsWith('-') ? null : slug
}

const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** The letters, digits and the hyphen of `tenantIdPattern`. */
const isSlugCharacter = (code: number): boolean =>
  (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39) || code === 0x2d

/**
 * The character at an index inside a string, where it is one that a key or a slug can have.
 * @returns its code; -1 for every other escape, and for the end of the body
 */
function readCharacter(body: ArrayLike<number>, at: number): number {
  const byte = body[at] ?? -1
  if (byte !== backslash) return byte
  if (body[at + 1] !== letterU) return -1
  let code = 0
  for (let digit = at + 2; digit < at + 6; digit++) {
    const value = toHexValue(body[digit])
    if (value < 0) return -1
    code = code * 16 + value
  }
  return code
}

const characterBytes = (body: ArrayLike<number>, at: number): number =>
  body[at] === backslash ? 6 : 1

function toHexValue(byte: number | undefined): number {
  if (byte === undefined) return -1
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
