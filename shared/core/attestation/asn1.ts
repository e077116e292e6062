/**
 * ASN.1 values, read by `asn1js` and narrowed to DER. `asn1js` reads BER: it accepts indefinite
 * lengths, bytes that follow a value, and any truth value, which are refused here.
 */
import { fromBER, ObjectIdentifier } from 'asn1js'
import { asn1DepthMax, asn1NodesMax, certificateBytesMax } from '../base/limits/attestation.ts'
import { Refusal } from './reasons.ts'

export type Asn1 = {
  tagClass: 'universal' | 'context' | 'other'
  tag: number
  /** The content without tag and length. */
  content: Buffer
  /** The whole value. */
  raw: Buffer
  /** Empty for a primitive value. */
  children: Asn1[]
  /** Of an object identifier, else null. */
  oid: string | null
}

/** What `asn1js` gives for a value, of whatever class. */
type Block = {
  idBlock: { tagClass: number; tagNumber: number; isConstructed: boolean; blockLength: number }
  lenBlock: { isIndefiniteForm: boolean; blockLength: number }
  valueBlock: { value?: unknown }
  valueBeforeDecodeView: Uint8Array
}

const classes = { 1: 'universal', 3: 'context' } as const

/** Universal tags. */
const tags = { boolean: 1, integer: 2, octets: 4, null: 5, enumerated: 10, sequence: 16, set: 17 }

/**
 * Reads one DER value and all in it.
 * @throws Refusal `malformed` when the bytes are not exactly one value, or are beyond the bounds
 */
export function parseAsn1(bytes: Uint8Array): Asn1 {
  if (bytes.length > certificateBytesMax) throw new Refusal('too_large', 'too many bytes of ASN.1')
  let result: ReturnType<typeof fromBER>
  try {
    result = fromBER(bytes, {
      maxDepth: asn1DepthMax,
      maxNodes: asn1NodesMax,
      maxContentLength: certificateBytesMax,
      parseEmbedded: false,
    })
  } catch {
    throw malformed('no ASN.1')
  }
  if (result.offset !== bytes.length) throw malformed('not exactly one ASN.1 value')
  return toAsn1(result.result as unknown as Block)
}

function toAsn1(block: Block): Asn1 {
  const { idBlock, lenBlock, valueBlock } = block
  if (lenBlock.isIndefiniteForm) throw malformed('an indefinite length')
  const { buffer, byteOffset, byteLength } = block.valueBeforeDecodeView
  const raw = Buffer.from(buffer, byteOffset, byteLength)
  const nested = idBlock.isConstructed && Array.isArray(valueBlock.value) ? valueBlock.value : []
  return {
    tagClass: classes[idBlock.tagClass as 1 | 3] ?? 'other',
    tag: idBlock.tagNumber,
    content: raw.subarray(idBlock.blockLength + lenBlock.blockLength),
    raw,
    children: (nested as Block[]).map(toAsn1),
    oid: block instanceof ObjectIdentifier ? block.getValue() : null,
  }
}

const malformed = (what: string) => new Refusal('malformed', what)

function expect(value: Asn1 | undefined, type: keyof typeof tags): Asn1 {
  if (value?.tagClass === 'universal' && value.tag === tags[type]) return value
  throw malformed(`no ${type}`)
}

/** @throws Refusal when it is no sequence of `least` to `most` values */
export function readSequence(value: Asn1 | undefined, least = 0, most = Infinity): Asn1[] {
  const { children } = expect(value, 'sequence')
  if (children.length >= least && children.length <= most) return children
  throw malformed(`a sequence of ${children.length} values`)
}

/** @throws Refusal when it is no set */
export const readSet = (value: Asn1 | undefined): Asn1[] => expect(value, 'set').children

/** @throws Refusal when it is no octet string */
export const readOctets = (value: Asn1 | undefined): Buffer => expect(value, 'octets').content

/** @throws Refusal unless it is DER's true (255) or false (0); BER takes any other byte as true */
export function readBoolean(value: Asn1 | undefined): boolean {
  const { content } = expect(value, 'boolean')
  if (content.length === 1 && (content[0] === 0 || content[0] === 255)) return content[0] === 255
  throw malformed('a boolean that is neither 00 nor ff')
}

/** @throws Refusal when it is no null */
export function readNull(value: Asn1 | undefined): true {
  if (expect(value, 'null').content.length === 0) return true
  throw malformed('a null with content')
}

/** @throws Refusal when it is no integer of at most eight bytes, or is negative */
export const readInteger = (value: Asn1 | undefined): number | string =>
  toUnsigned(expect(value, 'integer').content)

/** @throws Refusal when it is no enumerated value */
export const readEnumerated = (value: Asn1 | undefined): number | string =>
  toUnsigned(expect(value, 'enumerated').content)

/** A number, or decimal digits beyond what a number holds exactly. */
function toUnsigned(content: Buffer): number | string {
  if (content.length === 0 || content.length > 9) throw malformed('an integer of a wrong size')
  if (content[0]! >= 0x80) throw malformed('a negative integer')
  const value = BigInt(`0x${content.toString('hex')}`)
  return value <= Number.MAX_SAFE_INTEGER ? Number(value) : String(value)
}
