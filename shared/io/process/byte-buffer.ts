/**
 * Bytes that arrive in pieces, copied into one buffer. A list of pieces would keep some 300 bytes
 * for each of them, however small it is, or the large buffer that it is a part of.
 */
const bytesMin = 4 * 1024

export type ByteBuffer = {
  /** @returns the bytes of memory that were added for the piece */
  add: (piece: Uint8Array) => number
  /** Bytes so far. */
  length: () => number
  /** All bytes so far, in a buffer without spare room. */
  take: () => Buffer
  /** Forgets all bytes and their memory. */
  clear: () => void
}

const empty = Buffer.alloc(0)

/** @param bytesMax the most that are added; the buffer is never larger */
export function createByteBuffer(bytesMax: number): ByteBuffer {
  let buffer = empty
  let length = 0
  return {
    add: (piece) => {
      const end = length + piece.length
      const before = buffer.length
      if (end > before) {
        const larger = Buffer.allocUnsafeSlow(Math.min(bytesMax, Math.max(bytesMin, 2 * end)))
        buffer.copy(larger, 0, 0, length)
        buffer = larger
      }
      buffer.set(piece, length)
      length = end
      return buffer.length - before
    },
    length: () => length,
    take: () => (buffer.length === length ? buffer : Buffer.from(buffer.subarray(0, length))),
    clear: () => {
      buffer = empty
      length = 0
    },
  }
}
