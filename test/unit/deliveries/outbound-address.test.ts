// The address policy against the corpus, and properties that hold for every address.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  checkWebhookUrl,
  isForbiddenAddress,
  isRefusedAddress,
  type Network,
  parseNetwork,
  type WebhookRules,
} from '#shared/core/deliveries/outbound-address.ts'
import {
  allowedAddresses,
  forbiddenAddresses,
  forbiddenRanges,
  isForbiddenV4,
  isForbiddenV6,
  spelledHosts,
  toBigInt,
} from '../../support/deliveries/address-corpus.ts'

const live: WebhookRules = { environment: 'live', allowPrivate: true }
const sandbox: WebhookRules = { environment: 'sandbox', allowPrivate: false }
const privateSandbox: WebhookRules = { environment: 'sandbox', allowPrivate: true }

test.each(forbiddenAddresses)('no delivery may reach %s', (ip) => {
  expect(isForbiddenAddress(ip)).toBe(true)
  expect(isRefusedAddress(ip, live)).toBe(true)
  expect(isRefusedAddress(ip, sandbox)).toBe(true)
})

test.each(allowedAddresses)('%s stays reachable', (ip) => {
  expect(isForbiddenAddress(ip)).toBe(false)
  expect(isRefusedAddress(ip, live)).toBe(false)
})

test.each([
  ...['', 'localhost', '127.1', '0x7f.0.0.1', '0177.0.0.1', '2130706433', '1.2.3', '1.2.3.4.5'],
  ...['256.1.1.1', '1.1.1.1 ', '01.1.1.1', '+1.1.1.1', '1.1.1.1/8', '2606::4700::1', '2606:4700'],
  ...['[2606:4700::1]', '2606:4700:0:0:0:0:0:0:1', '2606:47000::1', '1.1.1.1::', '2606::1.1.1.1:1'],
  ...['2606:4700:1.1.1.1::', ':2606::1', '2606:4700:4700:1:2:3:4::1:2', '2606:4700::1%1', ':::'],
])('%j is no address to connect to', (text) => {
  expect(isForbiddenAddress(text)).toBe(true)
})

const v4 = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255))
const dotted = (bytes: readonly number[]) => bytes.join('.')
const group = fc.nat(0xffff)
// Half of the groups come from the corpus, so that random addresses land near the boundaries.
const cornerGroup = fc.constantFrom(
  ...[
    0, 1, 0x64, 0xff9b, 0x100, 0x2000, 0x2001, 0x1ff, 0x200, 0xdb8, 0x2002, 0x3fff, 0xfff, 0x1000,
  ],
  ...[
    0x5f00, 0xfc00, 0xfe80, 0xfec0, 0xff00, 0x7f00, 0xffff, 0xa9fe, 0x5efe, 0x808, 0x1fff, 0x4000,
  ],
)
const v6 = fc.array(fc.oneof(group, cornerGroup), { minLength: 8, maxLength: 8 })
const spell = (groups: readonly number[]) => groups.map((n) => n.toString(16)).join(':')
/** RFC 5952 spelling, by the serializer of the URL standard. */
const compress = (groups: readonly number[]) =>
  new URL(`http://[${spell(groups)}]`).hostname.slice(1, -1)
const runs = { numRuns: 1_000 }

const toGroups = (value: bigint) =>
  Array.from({ length: 8 }, (_, i) => Number((value >> BigInt(112 - 16 * i)) & 0xffffn))
const toBytes = (value: bigint) =>
  Array.from({ length: 4 }, (_, i) => Number((value >> BigInt(24 - 8 * i)) & 0xffn))

test.each(forbiddenRanges)(
  '%s is forbidden up to its ends, and its neighbours are checked',
  (range) => {
    const [ip = '', bits = ''] = range.split('/')
    const isV6 = ip.includes(':')
    const width = isV6 ? 128n : 32n
    const groups = ip.split('::')[0]!.split(':')
    const first = isV6
      ? toBigInt(Array.from({ length: 8 }, (_, i) => Number.parseInt(groups[i] ?? '0', 16)))
      : ip.split('.').reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n)
    const last = first + (1n << (width - BigInt(bits))) - 1n
    const isForbidden = (value: bigint) =>
      isV6 ? isForbiddenAddress(spell(toGroups(value))) : isForbiddenAddress(dotted(toBytes(value)))
    const expected = (value: bigint) =>
      isV6 ? isForbiddenV6(toGroups(value)) : isForbiddenV4(toBytes(value))
    for (const inside of [first, first + 1n, last - 1n, last]) {
      expect(isForbidden(inside)).toBe(true)
    }
    for (const outside of [first - 1n, last + 1n]) {
      if (outside < 0n || outside >= 1n << width) continue
      expect(isForbidden(outside), `${outside}`).toBe(expected(outside))
    }
  },
)

test('every IPv4 address has the verdict of the independent table', () => {
  fc.assert(
    fc.property(v4, (bytes) => isForbiddenAddress(dotted(bytes)) === isForbiddenV4(bytes)),
    runs,
  )
})

test('every IPv6 address has the verdict of the independent table, in every spelling', () => {
  fc.assert(
    fc.property(v6, (groups) => {
      const verdict = isForbiddenV6(groups)
      for (const text of [spell(groups), compress(groups), spell(groups).toUpperCase()]) {
        expect(isForbiddenAddress(text), text).toBe(verdict)
      }
    }),
    runs,
  )
})

test('a NAT64 address inherits the verdict of the IPv4 address inside', () => {
  fc.assert(
    fc.property(v4, (bytes) => {
      const [a, b, c, d] = bytes
      const verdict = isForbiddenAddress(dotted(bytes))
      expect(isForbiddenAddress(`64:ff9b::${dotted(bytes)}`)).toBe(verdict)
      const groups = [0x64, 0xff9b, 0, 0, 0, 0, a * 256 + b, c * 256 + d]
      expect(isForbiddenAddress(compress(groups))).toBe(verdict)
    }),
    runs,
  )
})

test('every address of 6to4 is forbidden, with any IPv4 address in it', () => {
  fc.assert(
    fc.property(v6, ([, ...rest]) => isForbiddenAddress(spell([0x2002, ...rest]))),
    runs,
  )
})

test('every address of ::/8 except NAT64 is forbidden: mapped, compatible, SIIT, ISATAP', () => {
  fc.assert(
    fc.property(fc.nat(0xff), v6, (first, [, ...rest]) => {
      const groups = [first, ...rest]
      fc.pre(toBigInt(groups) >> 32n !== 0x64ff9bn << 64n)
      expect(isForbiddenAddress(spell(groups))).toBe(true)
    }),
    runs,
  )
  fc.assert(
    fc.property(v4, (bytes) => isForbiddenAddress(`::ffff:${dotted(bytes)}`)),
    runs,
  )
})

test('any text has a verdict', () => {
  fc.assert(
    fc.property(fc.string(), (text) => typeof isForbiddenAddress(text) === 'boolean'),
    runs,
  )
})

test.each([
  ...['127.0.0.1', '10.0.0.1', '172.16.0.1', '192.168.1.1', '::1', 'fc00::1', 'fd12:3456::1'],
])('only a sandbox on a private network may reach %s', (ip) => {
  expect(isRefusedAddress(ip, privateSandbox)).toBe(false)
  expect(isRefusedAddress(ip, sandbox)).toBe(true)
  expect(isRefusedAddress(ip, live)).toBe(true)
})

test.each([
  ...['169.254.169.254', 'fd00:ec2::254', '0.0.0.0', '::', '224.0.0.1', '255.255.255.255'],
  ...['::ffff:127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::', 'fe80::1', '100.64.0.1', 'nonsense'],
])('a sandbox on a private network may not reach %s', (ip) => {
  expect(isRefusedAddress(ip, privateSandbox)).toBe(true)
})

test.each(spelledHosts)('the literal %s is rejected when it is saved', (host) => {
  for (const rules of [live, sandbox]) {
    expect(checkWebhookUrl(`https://${host}/hook`, rules)).toMatchObject({ ok: false })
  }
})

test.each([
  ...[
    'localhost',
    'localhost.',
    'LOCALHOST',
    'a.localhost',
    'a.localhost.',
    'intranet',
    'db.local',
  ],
  ...['metadata.google.internal', 'metadata.google.internal.', 'x.internal', 'nas.home.arpa'],
])('the private name %s is rejected when it is saved', (host) => {
  expect(checkWebhookUrl(`https://${host}/hook`, live)).toMatchObject({ ok: false })
})

test.each([
  ...['http://example.com/', 'ftp://example.com/', 'file:///etc/passwd', 'gopher://example.com/'],
  ...[
    'javascript:alert(1)',
    '//example.com/',
    'example.com',
    '',
    'https://',
    'https:///x',
    'https:x',
  ],
  ...['https://ok.com@127.0.0.1/', 'https://user:pass@example.com/', 'https://@example.com/'],
  ...['https://:@example.com/', 'https://127.0.0.1#@ok.com/', 'https://example.com/#x'],
  ...['https://example.com/#', 'https://example.com\\@127.0.0.1/', 'https:\\\\example.com/'],
  ...[
    'https://exa mple.com/',
    'https://example.com/\n',
    '\thttps://example.com/',
    'ht\ntps://a.com/',
  ],
  ...['https://example.com:80/', 'https://example.com:22/', 'https://example.com:1023/'],
  ...['https://example.com:0/', 'https://example.com:65536/', 'https://[::1', 'https://a..b:x/'],
  ...[
    'https://example.com:443@127.0.0.1/',
    'https://example.com%00.evil.com/',
    'wss://example.com/',
  ],
  `https://example.com/${'a'.repeat(2_048)}`,
  `https://example.com/${'ä'.repeat(500)}`,
])('the URL %j is rejected', (text) => {
  expect(checkWebhookUrl(text, live)).toMatchObject({ ok: false, why: expect.any(String) })
})

test.each([
  ['https://example.com/hook', 'https://example.com/hook'],
  ['HTTPS://EXAMPLE.com:443/hook?a=b@c', 'https://example.com/hook?a=b@c'],
  ['https://example.com:1024/', 'https://example.com:1024/'],
  ['https://example.com:8443', 'https://example.com:8443/'],
  ['https://1.1.1.1/hook', 'https://1.1.1.1/hook'],
  ['https://[2606:4700:4700::1111]/hook', 'https://[2606:4700:4700::1111]/hook'],
  ['https://bücher.example/', 'https://xn--bcher-kva.example/'],
  ['https://example.com/user@host', 'https://example.com/user@host'],
])('the URL %s is accepted and stored as %s', (text, url) => {
  expect(checkWebhookUrl(text, live)).toEqual({ ok: true, url })
  expect(checkWebhookUrl(text, sandbox)).toEqual({ ok: true, url })
})

test.each([
  ...['http://127.0.0.1:9000/hook', 'http://localhost:9000/', 'http://[::1]:9000/', 'http://nas/'],
  ...['https://10.1.2.3/', 'http://receiver.internal:8080/'],
])('only a sandbox on a private network may save %s', (text) => {
  expect(checkWebhookUrl(text, privateSandbox)).toMatchObject({ ok: true })
  expect(checkWebhookUrl(text, sandbox)).toMatchObject({ ok: false })
  expect(checkWebhookUrl(text, live)).toMatchObject({ ok: false })
})

test.each([
  ...['http://169.254.169.254/latest/meta-data', 'http://0.0.0.0:9000/', 'http://127.0.0.1:22/'],
  ...['http://u:p@127.0.0.1:9000/', 'ftp://127.0.0.1/', 'http://[::ffff:127.0.0.1]:9000/'],
])('a sandbox on a private network may not save %s', (text) => {
  expect(checkWebhookUrl(text, privateSandbox)).toMatchObject({ ok: false })
})

function networks(...texts: string[]): Network[] {
  return texts.map((text) => {
    const parsed = parseNetwork(text)
    if ('why' in parsed) throw new Error(`${text} ${parsed.why}`)
    return parsed.network
  })
}

const company: WebhookRules = {
  environment: 'live',
  allowPrivate: false,
  allowNetworks: networks('10.20.0.0/16', '192.168.7.0/24', 'fd12:3456::/32'),
}

test.each(['10.20.0.0', '10.20.255.255', '192.168.7.9', 'fd12:3456::1', '64:ff9b::10.20.0.1'])(
  'a live tenant may reach %s on a network that is allowed',
  (ip) => {
    expect(isRefusedAddress(ip, company)).toBe(false)
    expect(isRefusedAddress(ip, live)).toBe(true)
  },
)

test('addresses outside an allowed network stay unreachable', () => {
  for (const ip of ['10.19.255.255', '10.21.0.0', '192.168.6.255', '192.168.8.0', 'fd12:3457::']) {
    expect(isRefusedAddress(ip, company), ip).toBe(true)
  }
  for (const ip of ['127.0.0.1', '::1', '::ffff:10.20.0.1', '2002:0a14:0001::']) {
    expect(isRefusedAddress(ip, company), ip).toBe(true)
  }
})

test('metadata and link-local addresses are rejected for all tenants and settings', () => {
  const all = networks('100.0.0.0/8', '168.0.0.0/8', 'fc00::/7', '2000::/7')
  const never = [
    ...['169.254.169.254', '169.254.0.1', '169.254.170.2', '100.100.100.200', '168.63.129.16'],
    ...['192.0.0.192', 'fd00:ec2::254', 'fd20:ce::254', 'fd00:42::42', 'fe80::1'],
    ...['64:ff9b::a9fe:a9fe', '64:ff9b::6464:64c8', '::ffff:169.254.169.254'],
  ]
  for (const ip of never) {
    for (const environment of ['live', 'sandbox'] as const) {
      const rules = { environment, allowPrivate: true, allowNetworks: all }
      expect(isRefusedAddress(ip, rules), ip).toBe(true)
    }
  }
})

test.each([
  ['10.20.0.0', 'is not a network'],
  ['10.20.0.0/33', 'is not a network'],
  ['10.20.0.0/', 'is not a network'],
  ['company/8', 'is not a network'],
  ['fd12::/129', 'is not a network'],
  ['0.0.0.0/0', 'is too wide'],
  ['::/0', 'is too wide'],
  ['10.20.0.1/16', 'begin with its first address'],
  ['fd12:3456::1/32', 'begin with its first address'],
  ['169.254.0.0/16', 'can never hold a receiver'],
  ['127.0.0.0/8', 'can never hold a receiver'],
  ['fe80::/10', 'can never hold a receiver'],
  ['::1/128', 'can never hold a receiver'],
])('%s is not a valid network to allow: it %s', (text, why) => {
  expect(parseNetwork(text)).toEqual({ why: expect.stringContaining(why) })
})

test('on its own allowed network a company may use any host names; https is still required', () => {
  const check = (url: string, rules = company) => checkWebhookUrl(url, rules).ok
  const urls = ['https://hooks.corp.internal/', 'https://receiver:8443/', 'https://10.20.3.4/']
  for (const url of urls) expect([url, check(url), check(url, live)]).toEqual([url, true, false])
  for (const url of [
    'http://hooks.corp.internal/',
    'https://10.20.3.4:444/',
    'https://10.9.9.9/',
  ]) {
    expect([url, check(url)]).toEqual([url, false])
  }
})
