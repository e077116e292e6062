/**
 * Finds the byte at which a text stops being JSON, for the 400 of a body. `JSON.parse` gives no
 * position in bytes.
 */
import { isUtf8 } from 'node:buffer'

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const minus = 0x2d
const plus = 0x2b
const dot = 0x2e
const zero = 0x30

type Reader = { body: Uint8Array; at: number }

/**
 * The offset of the first byte that makes the body invalid JSON.
 * @param body valid UTF-8, nested no deeper than the call stack allows
 * @returns its offset from 0, the body's length when the body is cut off, or null when the body is
 *   JSON
 */
export function findJsonErrorOffset(body: Uint8Array): number | null {
  const reader: Reader = { body, at: 0 }
  skipSpace(reader)
  if (!readValue(reader)) return reader.at
  skipSpace(reader)
  return reader.at === body.length ? null : reader.at
}

/**
 * Where a body stops being UTF-8, for a 400. A decoder would put U+FFFD there, and an id would be
 * another.
 * @returns null when all of it is UTF-8
 */
export function findTextFault(body: Uint8Array): string | null {
  if (isUtf8(body)) return null
  const again = Buffer.from(Buffer.from(body).toString('utf8'))
  const at = body.findIndex((byte, index) => byte !== again[index])
  return `is not valid UTF-8 at byte ${at}, counted from 0`
}

/** What is wrong with a body that is not JSON, after its path `$`. The body is as above. */
export function describeJsonFault(body: Uint8Array): string {
  const at = findJsonErrorOffset(body) ?? body.length
  return at === body.length
    ? `is not valid JSON: it is cut off after ${at} bytes`
    : `is not valid JSON at byte ${at} of ${body.length}, counted from 0`
}

function readValue(reader: Reader): boolean {
  const byte = reader.body[reader.at]
  if (byte === quote) return readString(reader)
  if (byte === 0x7b) return readList(reader, 0x7d, readMember)
  if (byte === 0x5b) return readList(reader, 0x5d, readValue)
  if (byte === 0x74) return readWord(reader, 'true')
  if (byte === 0x66) return readWord(reader, 'false')
  if (byte === 0x6e) return readWord(reader, 'null')
  return readNumber(reader)
}

/** Reads items between brackets, separated by commas. */
function readList(reader: Reader, close: number, readItem: (reader: Reader) => boolean): boolean {
  reader.at++
  skipSpace(reader)
  if (take(reader, close)) return true
  for (;;) {
    skipSpace(reader)
    if (!readItem(reader)) return false
    skipSpace(reader)
    if (take(reader, close)) return true
    if (!take(reader, comma)) return false
  }
}

function readMember(reader: Reader): boolean {
  if (reader.body[reader.at] !== quote || !readString(reader)) return false
  skipSpace(reader)
  if (!take(reader, colon)) return false
  skipSpace(reader)
  return readValue(reader)
}

function readString(reader: Reader): boolean {
  const { body } = reader
  for (reader.at++; reader.at < body.length; reader.at++) {
    const byte = body[reader.at]!
    if (byte === quote) {
      reader.at++
      return true
    }
    if (byte < 0x20) return false
    if (byte === backslash && !readEscape(reader)) return false
  }
  return false
}

/** Stops at the last byte of the escape. */
function readEscape(reader: Reader): boolean {
  const byte = reader.body[++reader.at]
  if (byte !== 0x75) return byte !== undefined && '"\\/bfnrt'.includes(String.fromCharCode(byte))
  for (let digit = 0; digit < 4; digit++) {
    const hex = reader.body[++reader.at]
    if (hex === undefined || !/[0-9a-f]/i.test(String.fromCharCode(hex))) return false
  }
  return true
}

function readNumber(reader: Reader): boolean {
  take(reader, minus)
  if (!take(reader, zero) && !readDigits(reader)) return false
  if (take(reader, dot) && !readDigits(reader)) return false
  if (take(reader, 0x65) || take(reader, 0x45)) {
    if (!take(reader, plus)) take(reader, minus)
    return readDigits(reader)
  }
  return true
}

function readDigits(reader: Reader): boolean {
  const start = reader.at
  while (isDigit(reader.body[reader.at])) reader.at++
  return reader.at > start
}

const isDigit = (byte: number | undefined): boolean =>
  byte !== undefined && byte >= 0x30 && byte <= 0x39

function readWord(reader: Reader, word: string): boolean {
  for (let index = 0; index < word.length; index++) {
    if (!take(reader, word.charCodeAt(index))) return false
  }
  return true
}

/** Consumes the next byte if it is this one. */
function take(reader: Reader, byte: number): boolean {
  if (reader.body[reader.at] !== byte) return false
  reader.at++
  return true
}

function skipSpace(reader: Reader): void {
  for (;;) {
    const byte = reader.body[reader.at]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return
    reader.at++
  }
}
