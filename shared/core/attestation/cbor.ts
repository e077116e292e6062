/** CBOR of Apple's objects, read by `cbor2` and bounded before it is decoded. */
import { type DecodeOptions, decode, decodeSequence, SequenceEvents } from 'cbor2'
import { cborBytesMax, cborDepthMax, cborValuesMax } from '../base/limits/attestation.ts'
import { Refusal } from './reasons.ts'

export type CborMap = ReadonlyMap<unknown, unknown>

const options: DecodeOptions = {
  maxDepth: cborDepthMax,
  ignoreGlobalTags: true,
  // `rejectDuplicateKeys` of cbor2 compares keys as they are encoded: one key in two encodings
  // would pass.
  createObject: (entries) => {
    const map = new Map(entries.map(([key, value]) => [key, value] as const))
    if (map.size !== entries.length) throw new Error('a key twice')
    return map
  },
}

type IsKnown = (kind: number, info: number) => boolean

/** Integers, bytes, texts, arrays and maps, and false, true and null: no tags, no floats. */
const isOfObjects: IsKnown = (kind, info) => kind < 6 || (kind === 7 && info >= 20 && info <= 22)

/** What a later system may add to signed data: all but the break that ends an indefinite length. */
const isOfSequences: IsKnown = (kind, info) => kind < 7 || info < 28

/** Counts the values without building any, and refuses kinds that genuine objects do not have. */
function scan(bytes: Uint8Array, isKnown: IsKnown): void {
  if (bytes.length > cborBytesMax) throw new Refusal('too_large', `${bytes.length} bytes of CBOR`)
  let count = 0
  for (const [kind, info] of new SequenceEvents(bytes, options)) {
    count += 1
    if (count > cborValuesMax) throw new Refusal('too_large', 'too many values in CBOR')
    if (!isKnown(kind, info))
      throw new Refusal('malformed', 'a tag, a float or an indefinite length in CBOR')
  }
}

function read<T>(bytes: Uint8Array, isKnown: IsKnown, decodeBytes: () => T): T {
  try {
    scan(bytes, isKnown)
    return decodeBytes()
  } catch (error) {
    if (error instanceof Refusal) throw error
    throw new Refusal('malformed', 'no CBOR, or a key twice, or bytes behind it')
  }
}

/**
 * Reads one map.
 * @throws Refusal when the bytes are not exactly one map, or are beyond the bounds
 */
export function parseCborMap(bytes: Uint8Array): CborMap {
  return expectMap(read(bytes, isOfObjects, () => decode(bytes, options)))
}

/**
 * Reads values that follow each other, each a map.
 * @throws Refusal as above
 */
export function parseCborMaps(bytes: Uint8Array): CborMap[] {
  return read(bytes, isOfSequences, () => [...decodeSequence(bytes, options)]).map(expectMap)
}

export function expectMap(value: unknown): CborMap {
  if (value instanceof Map) return value
  throw new Refusal('malformed', 'no map in CBOR')
}

export function expectBytes(value: unknown, name: string): Buffer {
  if (value instanceof Uint8Array) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  }
  throw new Refusal('malformed', `${name} is missing, or is no bytes`)
}
