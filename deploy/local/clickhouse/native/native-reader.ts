// Reads and writes the values of ClickHouse's native protocol: variable-length integers, texts with
// their length before them, and fixed bytes. Reading waits for bytes of a stream; each length is
// bounded before anything of that length is kept.

/** The other side sent what the protocol, or a bound, does not allow. */
export class NativeProtocolError extends Error {}

/** The stream has ended within or between packets. */
export class StreamEndedError extends Error {}

export type NativeReader = {
  /** An unsigned integer below 2^53. */
  varint: () => Promise<number>
  uint8: () => Promise<number>
  bytes: (count: number) => Promise<Buffer>
  /** A text of at most `bytesMax` bytes. */
  text: (bytesMax: number) => Promise<string>
}

export function createNativeReader(source: AsyncIterable<Buffer>): NativeReader {
  const chunks = source[Symbol.asyncIterator]()
  let left: Buffer = Buffer.alloc(0)
  const bytes = async (count: number): Promise<Buffer> => {
    // Joined once: a long text can arrive in very many chunks.
    const pieces = [left]
    for (let length = left.length; length < count; ) {
      const { done, value } = await chunks.next()
      if (done === true) throw new StreamEndedError()
      pieces.push(value)
      length += value.length
    }
    if (pieces.length > 1) left = Buffer.concat(pieces)
    const taken = left.subarray(0, count)
    left = left.subarray(count)
    return taken
  }
  const uint8 = async () => (await bytes(1))[0]!
  const varint = async (): Promise<number> => {
    let value = 0
    for (let scale = 1; scale < 2 ** 49; scale *= 128) {
      const byte = await uint8()
      value += (byte % 128) * scale
      if (byte < 128) return value
    }
    throw new NativeProtocolError('an integer is too large')
  }
  return {
    bytes,
    uint8,
    varint,
    text: async (bytesMax) => {
      const length = await varint()
      if (length > bytesMax) throw new NativeProtocolError(`a text has ${length} bytes`)
      return (await bytes(length)).toString('utf8')
    },
  }
}

export function toVarint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  return Buffer.from([...bytes, rest])
}

export function toText(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([toVarint(bytes.length), bytes])
}
