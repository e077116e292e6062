// Finds the blocks in an answer of the format Native. The native protocol sends each block as a
// packet of its own, while over HTTP they follow one another without a length, so the types of the
// columns say how long each one is. Values stay as they are.

import { NativeProtocolError } from './native-reader.ts'

/**
 * Splits an answer into its blocks.
 * @param withFlags whether each column has a byte that says how it is serialized
 * @throws NativeProtocolError for a type whose length is not known here
 */
export function splitBlocks(answer: Buffer, withFlags: boolean): Buffer[] {
  const cursor: Cursor = { bytes: answer, at: 0 }
  const blocks: Buffer[] = []
  while (cursor.at < answer.length) {
    const start = cursor.at
    skipBlock(cursor, withFlags)
    blocks.push(answer.subarray(start, cursor.at))
  }
  return blocks
}

type Cursor = { bytes: Buffer; at: number }

function skipBlock(cursor: Cursor, withFlags: boolean): void {
  for (let field = varint(cursor); field !== 0; field = varint(cursor)) {
    if (field === 1) skip(cursor, 1)
    else if (field === 2) skip(cursor, 4)
    else throw new NativeProtocolError(`field ${field} of a block`)
  }
  const columns = varint(cursor)
  const rows = varint(cursor)
  for (let column = 0; column < columns; column++) {
    skipText(cursor)
    const type = cursor.bytes.toString('utf8', ...skipText(cursor))
    if (withFlags && cursor.bytes[cursor.at] !== 0) {
      throw new NativeProtocolError(`the serialization of ${type}`)
    }
    if (withFlags) skip(cursor, 1)
    if (rows === 0) continue
    skipPrefix(cursor, type)
    skipValues(cursor, type, rows)
  }
}

/** Types by the bytes of a value, without what is in parentheses. */
const typesOfWidth: Record<number, string[]> = {
  1: ['Int8', 'UInt8', 'Bool', 'Enum8', 'Nothing'],
  2: ['Int16', 'UInt16', 'Date', 'Enum16', 'BFloat16'],
  4: ['Int32', 'UInt32', 'Float32', 'Date32', 'DateTime', 'IPv4', 'Time'],
  8: ['Int64', 'UInt64', 'Float64', 'DateTime64', 'Time64'],
  16: ['Int128', 'UInt128', 'UUID', 'IPv6'],
  32: ['Int256', 'UInt256'],
}

const widths = new Map(
  Object.entries(typesOfWidth).flatMap(([bytes, names]) =>
    names.map((name): [string, number] => [name, Number(bytes)]),
  ),
)

const jsonAsText = 1n

/** Versions of serializations, which stand before all values of the column. */
function skipPrefix(cursor: Cursor, type: string): void {
  const [name, inner] = toParts(type)
  if (name === 'LowCardinality') skip(cursor, 8)
  else if (name === 'JSON') {
    skip(cursor, 8)
    if (cursor.bytes.readBigUInt64LE(cursor.at - 8) !== jsonAsText) {
      throw new NativeProtocolError(`values of ${type}`)
    }
  } else if (name === 'Nullable' || name === 'Array') skipPrefix(cursor, inner)
  else if (name === 'Map' || (name === 'Tuple' && inner !== '')) {
    for (const one of splitList(inner)) skipPrefix(cursor, withoutName(one))
  }
}

function skipValues(cursor: Cursor, type: string, rows: number): void {
  const [name, inner] = toParts(type)
  const width = name.startsWith('Interval') ? 8 : widths.get(name)
  if (width !== undefined) skip(cursor, rows * width)
  else if (name === 'LowCardinality') skipDictionary(cursor, inner, rows)
  else if (name === 'String' || name === 'JSON')
    for (let row = 0; row < rows; row++) skip(cursor, varint(cursor))
  else if (name === 'FixedString') skip(cursor, rows * Number(inner))
  else if (name === 'Decimal') skip(cursor, rows * toDecimalWidth(Number(splitList(inner)[0])))
  else if (name === 'Nullable') {
    skip(cursor, rows)
    skipValues(cursor, inner, rows)
  } else if (name === 'Array') skipValues(cursor, inner, skipOffsets(cursor, rows))
  else if (name === 'Map') {
    const count = skipOffsets(cursor, rows)
    for (const one of splitList(inner)) skipValues(cursor, one, count)
  } else if (name === 'Tuple' && inner !== '') {
    for (const one of splitList(inner)) skipValues(cursor, withoutName(one), rows)
  } else throw new NativeProtocolError(`values of ${type}`)
}

/** Distinct values, and of each row the number of its own. */
function skipDictionary(cursor: Cursor, inner: string, rows: number): void {
  if (rows === 0) return
  const head = cursor.bytes.readBigUInt64LE(cursor.at)
  const keys = Number(cursor.bytes.readBigUInt64LE(cursor.at + 8))
  skip(cursor, 16)
  const [name, nested] = toParts(inner)
  skipValues(cursor, name === 'Nullable' ? nested : inner, keys)
  skip(cursor, 8 + rows * 2 ** Number(head % 256n))
}

/** @returns the number of all elements */
function skipOffsets(cursor: Cursor, rows: number): number {
  skip(cursor, 8 * rows)
  return rows === 0 ? 0 : Number(cursor.bytes.readBigUInt64LE(cursor.at - 8))
}

const toDecimalWidth = (digits: number): number =>
  digits <= 9 ? 4 : digits <= 18 ? 8 : digits <= 38 ? 16 : 32

/** `Array(String)` is `Array` and `String`. */
function toParts(type: string): [name: string, inner: string] {
  const open = type.indexOf('(')
  if (open === -1) return [type, '']
  const [name, inner] = [type.slice(0, open), type.slice(open + 1, -1)]
  // Its values are those of the type after the function.
  return name === 'SimpleAggregateFunction' ? toParts(splitList(inner).at(-1)!) : [name, inner]
}

/** An element of a tuple may have a name: `a Int32`, or with quotes around it. */
function withoutName(element: string): string {
  const quoted = /^`(?:[^`\\]|\\.)*` /.exec(element)
  if (quoted !== null) return element.slice(quoted[0].length)
  const plain = /^\w+ /.exec(element)
  return plain === null ? element : element.slice(plain[0].length)
}

/** The items of a list, at whose commas no parenthesis and no quote is open. */
function splitList(text: string): string[] {
  const items: string[] = []
  let start = 0
  let depth = 0
  let quote = ''
  for (let at = 0; at < text.length; at++) {
    const one = text[at]!
    if (quote !== '') {
      if (one === '\\') at++
      else if (one === quote) quote = ''
    } else if (one === "'" || one === '`') quote = one
    else if (one === '(') depth++
    else if (one === ')') depth--
    else if (one === ',' && depth === 0) {
      items.push(text.slice(start, at).trim())
      start = at + 1
    }
  }
  return [...items, text.slice(start).trim()]
}

function varint(cursor: Cursor): number {
  let value = 0
  for (let scale = 1; scale < 2 ** 49; scale *= 128) {
    const byte = cursor.bytes[cursor.at++]
    if (byte === undefined) break
    value += (byte % 128) * scale
    if (byte < 128) return value
  }
  throw new NativeProtocolError('the end of a block')
}

/** @returns where the text begins and ends */
function skipText(cursor: Cursor): [from: number, to: number] {
  const length = varint(cursor)
  skip(cursor, length)
  return [cursor.at - length, cursor.at]
}

function skip(cursor: Cursor, count: number): void {
  cursor.at += count
  if (cursor.at > cursor.bytes.length) throw new NativeProtocolError('the end of a block')
}
