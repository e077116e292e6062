/** Writes DER, for certificates that no certificate authority would issue. */

type Content = Uint8Array | readonly Uint8Array[]

const join = (content: Content): Buffer =>
  content instanceof Uint8Array ? Buffer.from(content) : Buffer.concat(content)

function toLength(bytes: number): Buffer {
  if (bytes < 0x80) return Buffer.of(bytes)
  const hex = bytes.toString(16)
  const digits = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')
  return Buffer.concat([Buffer.of(0x80 | digits.length), digits])
}

const der = (identifier: Uint8Array, content: Content): Buffer => {
  const bytes = join(content)
  return Buffer.concat([identifier, toLength(bytes.length), bytes])
}

const universal =
  (tag: number) =>
  (content: Content): Buffer =>
    der(Buffer.of(tag), content)

export const sequence = universal(0x30)
export const set = universal(0x31)
export const octets = universal(0x04)
const oidBytes = universal(0x06)
export const utf8 = (text: string): Buffer => universal(0x0c)(Buffer.from(text))
export const bits = (bytes: Uint8Array): Buffer => universal(0x03)([Buffer.of(0), bytes])
export const boolean = (value: boolean): Buffer => universal(0x01)(Buffer.of(value ? 0xff : 0))
export const nothing = universal(0x05)([])
export const enumerated = (value: number): Buffer => universal(0x0a)(Buffer.of(value))

export function integer(value: number | bigint): Buffer {
  const hex = BigInt(value).toString(16)
  const digits = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')
  return universal(0x02)(digits[0]! >= 0x80 ? [Buffer.of(0), digits] : digits)
}

/** `1.2.840.10045.4.3.2` */
export function oid(text: string): Buffer {
  const [first, second, ...rest] = text.split('.').map(Number)
  const toBase128 = (value: number): number[] => {
    const digits = [value % 128]
    for (let left = Math.floor(value / 128); left > 0; left = Math.floor(left / 128)) {
      digits.unshift(0x80 | (left % 128))
    }
    return digits
  }
  return oidBytes(Buffer.from([first! * 40 + second!, ...rest].flatMap(toBase128)))
}

/** An explicit context tag around a value. */
export function explicit(tag: number, value: Uint8Array): Buffer {
  if (tag < 31) return der(Buffer.of(0xa0 | tag), value)
  const high = tag >= 128 ? [0x80 | (tag >> 7), tag & 0x7f] : [tag]
  return der(Buffer.from([0xbf, ...high]), value)
}

/** X.509's time: two digits of the year until 2049. */
export function time(atMs: number): Buffer {
  const digits = new Date(atMs).toISOString().replace(/[-:T]|\.\d+/g, '')
  return Number(digits.slice(0, 4)) < 2050
    ? universal(0x17)(Buffer.from(digits.slice(2)))
    : universal(0x18)(Buffer.from(digits))
}
