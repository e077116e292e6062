/**
 * Reads the records of an MMDB file with the decoder of mmdb-lib, within bounds. The decoder alone
 * follows pointers without end, makes arrays of 16 million elements for a byte, and reads what
 * shared parts multiply into. Records are written by others, so each of these ends in an error.
 */
import mmdbDecoder from 'mmdb-lib/lib/decoder.js'
import {
  recordDepthMax,
  recordValuesMin,
  recordValuesPerByte,
} from '#shared/core/base/limits/lists.ts'

/** Why a file is not used; the message is one of ours and quotes nothing of the file. */
export class NetworkFileError extends Error {
  override name = 'NetworkFileError'
}

type Cursor = { value: unknown; offset: number }

/** The methods of mmdb-lib 3.0.3 that a subclass stands between. */
interface Decoder {
  decode(offset: number): Cursor
  decodeByType(type: number, offset: number, size: number): Cursor
}
type DecoderClass = new (file: Buffer, baseOffset: number) => Decoder

// Node gives the module of a CommonJS default export, a bundler its class.
const imported = mmdbDecoder as unknown as DecoderClass & { default?: DecoderClass }
const LibraryDecoder = imported.default ?? imported

const types = { string: 2, bytes: 4, map: 7, array: 11 }

class BoundedDecoder extends LibraryDecoder {
  readonly #end: number
  #depth = 0
  #valuesLeft: number

  constructor(file: Buffer, baseOffset: number) {
    super(file, baseOffset)
    this.#end = file.length
    this.#valuesLeft = Math.max(recordValuesMin, file.length * recordValuesPerByte)
  }

  override decode(offset: number): Cursor {
    if (offset < 0 || offset >= this.#end) throw new NetworkFileError(endsBehind)
    if (this.#depth === recordDepthMax) throw new NetworkFileError('a record is nested too deep')
    if (--this.#valuesLeft < 0) throw new NetworkFileError('its records have too many values')
    this.#depth++
    const found = super.decode(offset)
    this.#depth--
    return found
  }

  override decodeByType(type: number, offset: number, size: number): Cursor {
    const isText = type === types.string || type === types.bytes
    const isMany = type === types.map || type === types.array
    if ((isText || isMany) && size > this.#end - offset) throw new NetworkFileError(endsBehind)
    // A shared text is made again for each record that has it, so its length counts.
    if (isText) this.#valuesLeft -= size >> 4
    return super.decodeByType(type, offset, size)
  }
}

const endsBehind = 'a record ends behind the file'

/** Reads the value at an offset. @throws NetworkFileError for whatever is no value */
export type DecodeRecord = (offset: number) => unknown

/** @param baseOffset where the pointers of these records count from */
export function createRecordDecoder(file: Buffer, baseOffset: number): DecodeRecord {
  const decoder = new BoundedDecoder(file, baseOffset)
  return (offset) => {
    try {
      return decoder.decode(offset).value
    } catch (error) {
      if (error instanceof NetworkFileError) throw error
      throw new NetworkFileError('a record cannot be read', { cause: error })
    }
  }
}
