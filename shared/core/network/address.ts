/**
 * Addresses and networks as numbers: how they are read and written, and which network is kept of an
 * address. IPv4 that IPv6 only maps is IPv4.
 */
import ipaddr from 'ipaddr.js'

/** One word of 32 bits for IPv4, four for IPv6, the first is the highest. */
export type AddressWords = readonly number[]

/** No zone, which names an interface of one machine. */
const colons = /^[\da-fA-F:]+(?::([\d.]{7,15}))?$/

/** A part of dotted decimal. The library also reads octal and hexadecimal ones. */
const part = /^(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)$/

/** @returns null for what is no dotted IPv4 */
function parseDotted(text: string): AddressWords | null {
  const [a, b, c, d, ...more] = text.length > 15 ? [] : text.split('.')
  if (d === undefined || more.length > 0) return null
  if (!part.test(a!) || !part.test(b!) || !part.test(c!) || !part.test(d)) return null
  return [((+a! << 24) | (+b! << 16) | (+c! << 8) | +d) >>> 0]
}

/**
 * Reads an address.
 * @param text dotted IPv4, or IPv6 in any spelling without a zone
 * @returns null for what is no address
 */
export function parseAddress(text: string): AddressWords | null {
  const dotted = parseDotted(text)
  if (dotted !== null) return dotted
  if (text.length > 45) return null
  const form = colons.exec(text)
  const hex = form === null ? null : toHexTail(text, form[1])
  const words = hex === null ? null : parseColons(hex)
  if (words === null) return null
  return words[0] === 0 && words[1] === 0 && words[2] === 0xffff ? [words[3]!] : words
}

/**
 * Writes a dotted end in hexadecimal, since the library takes `::203.0.113.9` for an address that
 * maps IPv4.
 * @returns null where the end is no dotted IPv4
 */
function toHexTail(text: string, dotted: string | undefined): string | null {
  if (dotted === undefined) return text
  const [word] = parseDotted(dotted) ?? []
  if (word === undefined) return null
  const hex = `${(word >>> 16).toString(16)}:${(word & 0xffff).toString(16)}`
  return text.slice(0, -dotted.length) + hex
}

function parseColons(text: string): AddressWords | null {
  try {
    const { parts } = ipaddr.IPv6.parse(text)
    return [0, 2, 4, 6].map((at) => ((parts[at]! << 16) | parts[at + 1]!) >>> 0)
  } catch {
    return null
  }
}

/** The one spelling of an address: dotted, or compressed lower case (RFC 5952). */
export function formatAddress(words: AddressWords): string {
  if (words.length === 1) {
    const word = words[0]!
    return [word >>> 24, (word >>> 16) & 255, (word >>> 8) & 255, word & 255].join('.')
  }
  const parts = words.flatMap((word) => [word >>> 16, word & 0xffff])
  return new ipaddr.IPv6(parts).toRFC5952String()
}

/** A network: its first address and the length of its prefix in bits. */
export type Network = { words: AddressWords; length: number }

/**
 * Reads a network in CIDR notation, or an address, which is a network of its own.
 * @param text `203.0.113.0/24`, `2001:db8::/32`, `203.0.113.9`
 * @returns null for what is none, and where bits behind the prefix are set (`203.0.113.9/24`)
 */
export function parseNetwork(text: string): Network | null {
  const found = parsePrefix(text)
  if (found === null) return null
  const { words } = toNetwork(found)
  return words.every((word, at) => word === found.words[at]) ? found : null
}

/**
 * Reads an address with the length of a prefix, of which bits behind the prefix may be set.
 * @returns null for what is none
 */
export function parsePrefix(text: string): Network | null {
  const slash = text.indexOf('/')
  const words = parseAddress(slash === -1 ? text : text.slice(0, slash))
  if (words === null) return null
  const bits = 32 * words.length
  if (slash === -1) return { words, length: bits }
  const suffix = text.slice(slash + 1)
  if (!/^(?:0|[1-9]\d{0,2})$/.test(suffix)) return null
  // Of ::ffff:203.0.113.0/120 the first 96 bits are those of the mapping.
  const isMapped = words.length === 1 && text.includes(':')
  const length = Number(suffix) - (isMapped ? 96 : 0)
  return length < 0 || length > bits ? null : { words, length }
}

/** The network of an address with the length of a prefix: the bits behind it are 0. */
export const toNetwork = ({ words, length }: Network): Network => ({
  words: toNetworkWords(words, length),
  length,
})

/** Whether a network contains another one, or is the same. */
export const containsNetwork = (wide: Network, { words, length }: Network): boolean =>
  wide.words.length === words.length &&
  wide.length <= length &&
  toNetworkWords(words, wide.length).every((word, at) => word === wide.words[at])

/** An address with the bits behind a prefix set to 0. */
function toNetworkWords(words: AddressWords, length: number): AddressWords {
  return words.map((word, at) => {
    const kept = length - 32 * at
    if (kept >= 32) return word
    return kept <= 0 ? 0 : (word & (-1 << (32 - kept))) >>> 0
  })
}

export const formatNetwork = ({ words, length }: Network): string =>
  `${formatAddress(words)}/${length}`

/** Bits of the network that is kept of an address: households and sites have one each. */
const storedBits = { v4: 24, v6: 48 } as const
const storedBitsOf = (words: AddressWords) => (words.length === 1 ? storedBits.v4 : storedBits.v6)

/** The network that is stored of an address: the /24 of IPv4, the /48 of IPv6. */
export const toStoredNetwork = (words: AddressWords): string =>
  formatNetwork(toNetwork({ words, length: storedBitsOf(words) }))

/** Whether a network says no more of an address than what is stored of it. */
export const isNoNarrowerThanStored = ({ words, length }: Network): boolean =>
  length <= storedBitsOf(words)
