/**
 * Encodes rows in ClickHouse's RowBinary format, the cheapest one for the server. Strings are
 * copied unchanged, so a stored body has the bytes that arrived. The format has no column names:
 * the insert names the columns in the order in which they are written.
 */

export type RowWriter = {
  string: (text: string) => void
  bytes: (data: Uint8Array) => void
  /** A string of a fixed length: bytes without a length. */
  fixed: (data: Uint8Array) => void
  uint8: (value: number) => void
  uint16: (value: number) => void
  uint32: (value: number) => void
  /** Also a DateTime64, in its ticks. */
  int64: (value: number) => void
  float32: (value: number) => void
  float64: (value: number) => void
  nullableInt64: (value: number | null) => void
  strings: (texts: readonly string[]) => void
  /** The length of an array whose values follow. */
  arrayLength: (length: number) => void
  /**
   * Reserves space for a count that is known only after its items are written.
   * @returns a function that writes the count, once
   */
  countLater: () => (count: number) => void
  /** The bytes since the last reset; valid until the next one. */
  written: () => Buffer
  reset: () => void
}

const firstBytes = 256 * 1024
/** A larger buffer is released instead of being reused. */
const keptBytesMax = 4 * 1024 * 1024

/** Creates a reusable writer: its buffer grows as needed. */
export function createRowWriter(): RowWriter {
  let buffer = Buffer.allocUnsafe(firstBytes)
  let at = 0

  const reserve = (bytes: number): void => {
    if (at + bytes <= buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(buffer.length * 2, at + bytes))
    buffer.copy(larger, 0, 0, at)
    buffer = larger
  }
  const varint = (value: number): void => {
    let rest = value
    while (rest > 0x7f) {
      buffer[at++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    buffer[at++] = rest
  }
  const string = (text: string): void => {
    const bytes = Buffer.byteLength(text)
    reserve(bytes + 5)
    varint(bytes)
    at += buffer.write(text, at, bytes, 'utf8')
  }
  const int64 = (value: number): void => {
    reserve(8)
    const high = Math.floor(value / 2 ** 32)
    buffer.writeUInt32LE(value - high * 2 ** 32, at)
    buffer.writeInt32LE(high, at + 4)
    at += 8
  }
  return {
    string,
    int64,
    bytes: (data) => {
      reserve(data.length + 5)
      varint(data.length)
      buffer.set(data, at)
      at += data.length
    },
    fixed: (data) => {
      reserve(data.length)
      buffer.set(data, at)
      at += data.length
    },
    uint16: (value) => {
      reserve(2)
      at = buffer.writeUInt16LE(value, at)
    },
    arrayLength: (length) => {
      reserve(5)
      varint(length)
    },
    countLater: () => {
      reserve(3)
      const place = at
      at += 3
      // Always three bytes: a varint ends at the first byte without the high bit.
      return (count) => {
        buffer[place] = (count & 0x7f) | 0x80
        buffer[place + 1] = ((count >> 7) & 0x7f) | 0x80
        buffer[place + 2] = (count >> 14) & 0x7f
      }
    },
    uint8: (value) => {
      reserve(1)
      buffer[at++] = value
    },
    uint32: (value) => {
      reserve(4)
      at = buffer.writeUInt32LE(value, at)
    },
    float32: (value) => {
      reserve(4)
      at = buffer.writeFloatLE(value, at)
    },
    float64: (value) => {
      reserve(8)
      at = buffer.writeDoubleLE(value, at)
    },
    nullableInt64: (value) => {
      reserve(1)
      buffer[at++] = value === null ? 1 : 0
      if (value !== null) int64(value)
    },
    strings: (texts) => {
      reserve(5)
      varint(texts.length)
      for (const text of texts) string(text)
    },
    written: () => buffer.subarray(0, at),
    reset: () => {
      at = 0
      if (buffer.length > keptBytesMax) buffer = Buffer.allocUnsafe(firstBytes)
    },
  }
}
