/** Finds where a member of a body has its value, so that it can be replaced byte for byte. */
import { findStringEnd } from '../body-scan.ts'

const [quote, colon, comma] = [0x22, 0x3a, 0x2c]
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d]

/** Of bytes: the first one, and the one after the last. */
export type ByteRange = { start: number; end: number }

/**
 * @param body valid JSON, an object in which no member is given more than once, or the start of it
 * @param path names of nested members, the outermost first
 * @returns the value without white space around it; null where there is none
 * @throws for some bytes that are no JSON
 */
export function findMember(body: Uint8Array, path: readonly string[]): ByteRange | null {
  /** How many of the path's objects this place is in. */
  let inside = 0
  let depth = 0
  let key: ByteRange | null = null
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]
    if (byte === quote) {
      const start = at
      at = findStringEnd(body, at + 1)
      key = { start, end: at + 1 }
    } else if (byte === colon) {
      if (depth === inside + 1 && readText(body, key!) === path[inside]) {
        const start = skipSpaces(body, at + 1)
        if (inside === path.length - 1) return { start, end: findValueEnd(body, start) }
        if (body[start] !== openBrace) return null
        inside++
      }
    } else if (byte === openBrace || byte === openBracket) depth++
    else if (byte === closeBrace || byte === closeBracket) {
      depth--
      // No other member has the name of the one that ended.
      if (depth <= inside) return null
    }
  }
  return null
}

const readText = (body: Uint8Array, { start, end }: ByteRange): unknown =>
  JSON.parse(Buffer.from(body.subarray(start, end)).toString('utf8'))

const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

function skipSpaces(body: Uint8Array, start: number): number {
  let at = start
  while (isSpace(body[at])) at++
  return at
}

function findValueEnd(body: Uint8Array, start: number): number {
  let depth = 0
  let at = start
  for (; at < body.length; at++) {
    const byte = body[at]
    if (byte === quote) at = findStringEnd(body, at + 1)
    else if (byte === openBrace || byte === openBracket) depth++
    else if (depth === 0 && (byte === comma || byte === closeBrace)) break
    else if (byte === closeBrace || byte === closeBracket) depth--
  }
  while (isSpace(body[at - 1])) at--
  return at
}
