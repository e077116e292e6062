/**
 * Where a webhook may go: the form of its URL, and the addresses that its name may resolve to.
 * Everything but a public unicast address is refused, also inside NAT64, 6to4 or Teredo. The
 * address of each connection is checked again (`shared/io/deliveries/outbound/connect.ts`).
 */
import { urlCharactersMax } from '#shared/core/base/limits/http.ts'

export type WebhookRules = {
  /** The tenant's environment. */
  environment: 'live' | 'sandbox'
  /** Whether this installation allows sandbox tenants private networks. */
  allowPrivate: boolean
  /** The operator's own networks in which receivers may be, also those of live tenants. */
  allowNetworks?: readonly Network[]
}

type UrlVerdict = { ok: true; url: string } | { ok: false; why: string }

/** Whether these rules allow http and private addresses: never for a live tenant. */
export function mayBePrivate(rules: WebhookRules): boolean {
  return rules.environment === 'sandbox' && rules.allowPrivate
}

/** A network: addresses with the same first bits. */
export type Network = { prefix: readonly number[]; bits: number }

/**
 * IPv4 that is not public unicast: IANA's special-purpose registry, multicast and reserved space.
 */
const forbiddenV4 = toRanges([
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16'],
  ...['172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16'],
  ...['198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
])

/** The space that IANA has allocated for global unicast. */
const globalUnicastV6 = toRange('2000::/3')

/** Not public inside it: protocol assignments with Teredo, documentation, and 6to4. */
const forbiddenV6 = toRanges(['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'])

/** NAT64 reaches the IPv4 address in its last four bytes, so that address is checked. */
const nat64 = toRange('64:ff9b::/96')

/** Private networks that a sandbox may reach: loopback, RFC 1918 and unique local addresses. */
const privateV4 = toRanges(['127.0.0.0/8', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'])
const privateV6 = toRanges(['::1/128', 'fc00::/7'])

/**
 * Addresses that `allowNetworks` cannot open: metadata services of clouds, which give out a
 * machine's credentials (AWS, Azure, Google, Oracle, Alibaba, Scaleway), link-local addresses,
 * loopback and multicast.
 */
const neverV4 = toRanges([
  ...['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '192.0.0.0/24', '100.100.100.200/32'],
  ...['168.63.129.16/32', '224.0.0.0/4', '240.0.0.0/4'],
])
const metadataV4 = toRanges(['169.254.0.0/16', '100.100.100.200/32', '168.63.129.16/32'])
const metadataV6 = toRanges(['fd00:ec2::254/128', 'fd20:ce::254/128', 'fd00:42::42/128'])

/** Unique local addresses: of non-public IPv6 only these can be allowed. */
const uniqueLocal = toRange('fc00::/7')

/**
 * Whether an address is not public unicast. A text that is no address is forbidden too.
 * @param ip dotted IPv4, or IPv6 in any spelling, without brackets
 */
export function isForbiddenAddress(ip: string): boolean {
  const bytes = parseAddress(ip)
  if (bytes === null) return true
  if (bytes.length === 4) return isIn(forbiddenV4, bytes)
  if (contains(nat64, bytes)) return isIn(forbiddenV4, bytes.slice(12))
  return !contains(globalUnicastV6, bytes) || isIn(forbiddenV6, bytes)
}

/** The IPv4 address that an IPv6 address reaches by NAT64, dotted; any other address as it is. */
export function unwrapNat64(ip: string): string {
  const bytes = parseAddress(ip)
  if (bytes?.length !== 16 || !contains(nat64, bytes)) return ip
  return bytes.slice(12).join('.')
}

/**
 * Whether a delivery under these rules must not connect to an address.
 * @param ip as for `isForbiddenAddress`
 */
export function isRefusedAddress(ip: string, rules: WebhookRules): boolean {
  const bytes = parseAddress(unwrapNat64(ip))
  if (bytes === null || isIn(bytes.length === 4 ? metadataV4 : metadataV6, bytes)) return true
  if (!isForbiddenAddress(ip) || isAllowed(bytes, rules.allowNetworks ?? [])) return false
  if (!mayBePrivate(rules)) return true
  const asIs = parseAddress(ip)!
  return !isIn(asIs.length === 4 ? privateV4 : privateV6, asIs)
}

function isAllowed(bytes: readonly number[], networks: readonly Network[]): boolean {
  return isIn(networks, bytes) && mayBeAllowed(bytes)
}

function mayBeAllowed(bytes: readonly number[]): boolean {
  if (bytes.length === 4) return !isIn(neverV4, bytes)
  const isUnicast = contains(uniqueLocal, bytes) || contains(globalUnicastV6, bytes)
  return isUnicast && !isIn(metadataV6, bytes) && !isIn(forbiddenV6, bytes)
}

/**
 * Reads a network that an operator allows receivers in: `10.20.0.0/16`, `fd12:3456::/32`.
 * @returns the network, or what is wrong with the text
 */
export function parseNetwork(text: string): { network: Network } | { why: string } {
  const [, address = '', length = ''] = /^([^/]*)\/(\d{1,3})$/.exec(text) ?? []
  const prefix = parseAddress(address)
  const bits = Number(length)
  if (prefix === null || length === '' || bits > prefix.length * 8) {
    return { why: 'is not a network like 10.20.0.0/16 or fd12:3456::/32' }
  }
  if (bits < (prefix.length === 4 ? 8 : 7)) return { why: 'is too wide: /8 at least, /7 for IPv6' }
  const network = { prefix, bits }
  const first = prefix.map((byte, n) => byte & (0xff00 >> Math.min(8, Math.max(0, bits - 8 * n))))
  if (first.some((byte, n) => (byte & 0xff) !== prefix[n])) {
    return { why: 'has bits beyond its length: begin with its first address' }
  }
  return mayBeAllowed(prefix) ? { network } : { why: 'can never hold a receiver' }
}

/** Names of a local machine or network, with all their subdomains. */
const privateNames = ['localhost', 'localdomain', 'local', 'internal', 'home.arpa', 'onion']

/**
 * Checks the text of a webhook URL. Its name must still be resolved and checked.
 * @returns the URL in the normal form of the URL standard, to store, or why it is refused
 */
export function checkWebhookUrl(text: string, rules: WebhookRules): UrlVerdict {
  const fault = findTextFault(text)
  if (fault !== null) return { ok: false, why: fault }
  const url = URL.parse(text)
  if (url === null) return { ok: false, why: 'it is not a URL' }
  const why = findUrlFault(url, rules)
  if (why !== null) return { ok: false, why }
  // Percent-encoding can lengthen what was short enough.
  if (url.href.length > urlCharactersMax) return { ok: false, why: tooLong }
  return { ok: true, url: url.href }
}

const tooLong = `it has more than ${urlCharactersMax} characters`

/** The URL standard repairs these silently, so the text differs from the called URL. */
function findTextFault(text: string): string | null {
  if (text.length > urlCharactersMax) return tooLong
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it finds
  if (/[\u0000-\u0020\u007f\\]/.test(text)) {
    return 'it contains white space, control characters or backslashes'
  }
  if (!/^https?:\/\/[^/]/i.test(text)) return 'it does not begin with https:// and a host'
  if (text.includes('#')) return 'it has a fragment'
  if (/^[^/]*\/\/[^/?]*@/.test(text)) return 'it carries a user name or password'
  return null
}

function findUrlFault(url: URL, rules: WebhookRules): string | null {
  const open = mayBePrivate(rules)
  if (url.protocol !== 'https:' && !(open && url.protocol === 'http:')) return 'it is not https'
  if (url.username !== '' || url.password !== '') return 'it carries a user name or password'
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
  if (port !== 443 && port < 1_024 && !(open && port === 80)) {
    return 'its port is neither 443 nor above 1023'
  }
  const literal = toIpLiteral(url.hostname)
  if (literal !== null) {
    return isRefusedAddress(literal, rules) ? 'its address is not a public one' : null
  }
  // Any name can be on the operator's own network; its addresses decide.
  const anyName = open || (rules.allowNetworks ?? []).length > 0
  return anyName ? null : findNameFault(url.hostname)
}

function findNameFault(hostname: string): string | null {
  const name = hostname.replace(/\.$/, '').toLowerCase()
  if (!name.includes('.')) return 'its host is not a full domain name'
  const isPrivate = privateNames.some((suffix) => name === suffix || name.endsWith(`.${suffix}`))
  return isPrivate ? 'its host is a name of a private network' : null
}

/**
 * The address a URL's host spells, or null when it is a name.
 * @param hostname of a parsed URL: IPv6 in brackets, IPv4 already in dotted form
 */
export function toIpLiteral(hostname: string): string | null {
  if (hostname.startsWith('[')) return hostname.slice(1, -1)
  return parseV4(hostname) === null ? null : hostname
}

function isIn(ranges: readonly Network[], bytes: readonly number[]): boolean {
  return ranges.some((range) => contains(range, bytes))
}

function contains({ prefix, bits }: Network, bytes: readonly number[]): boolean {
  if (prefix.length !== bytes.length) return false
  const whole = bits >> 3
  for (let i = 0; i < whole; i++) if (prefix[i] !== bytes[i]) return false
  const rest = bits & 7
  if (rest === 0) return true
  const shift = 8 - rest
  return prefix[whole]! >> shift === bytes[whole]! >> shift
}

function toRanges(texts: readonly string[]): Network[] {
  return texts.map(toRange)
}

function toRange(text: string): Network {
  const at = text.indexOf('/')
  return { prefix: parseAddress(text.slice(0, at))!, bits: Number(text.slice(at + 1)) }
}

/** The bytes of an address, 4 or 16, or null. An address with a zone cannot be dialled. */
export function parseAddress(ip: string): number[] | null {
  return ip.includes(':') ? parseV6(ip) : parseV4(ip)
}

/** Four decimal bytes without leading zeros: parsers disagree about other spellings. */
function parseV4(text: string): number[] | null {
  const parts = text.split('.')
  if (parts.length !== 4) return null
  const bytes = parts.map((part) => (/^(0|[1-9]\d{0,2})$/.test(part) ? Number(part) : 256))
  return bytes.every((byte) => byte <= 255) ? bytes : null
}

function parseV6(text: string): number[] | null {
  const halves = text.split('::')
  if (halves.length > 2) return null
  const head = parseGroups(halves[0]!, halves.length === 1)
  const tail = halves.length === 2 ? parseGroups(halves[1]!, true) : []
  if (head === null || tail === null) return null
  const missing = 16 - head.length - tail.length
  if (halves.length === 1 ? missing !== 0 : missing < 2) return null
  return [...head, ...new Array<number>(missing).fill(0), ...tail]
}

/** The bytes of colon-separated groups; the last one of the address may be dotted IPv4. */
function parseGroups(text: string, atEnd: boolean): number[] | null {
  if (text === '') return []
  const bytes: number[] = []
  const groups = text.split(':')
  for (const [index, group] of groups.entries()) {
    if (/^[0-9a-f]{1,4}$/i.test(group)) {
      const value = Number.parseInt(group, 16)
      bytes.push(value >> 8, value & 255)
      continue
    }
    const dotted = atEnd && index === groups.length - 1 ? parseV4(group) : null
    if (dotted === null) return null
    bytes.push(...dotted)
  }
  return bytes
}
