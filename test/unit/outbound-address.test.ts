// The address corpus: what no webhook may reach in any spelling, its neighbours that must stay
// reachable, and properties that hold for every address rather than for the ones we thought of.
import { BlockList } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  checkWebhookUrl,
  isForbiddenAddress,
  isRefusedAddress,
  type WebhookRules,
} from '#shared/core/outbound-address.ts'

const live: WebhookRules = { environment: 'live', allowPrivate: true }
const sandbox: WebhookRules = { environment: 'sandbox', allowPrivate: false }
const privateSandbox: WebhookRules = { environment: 'sandbox', allowPrivate: true }

const forbidden = [
  ...['0.0.0.0', '0.1.2.3', '0.255.255.255', '10.0.0.0', '10.255.255.255', '100.64.0.0'],
  ...['100.127.255.255', '127.0.0.1', '127.255.255.255', '169.254.0.0', '169.254.169.254'],
  ...['172.16.0.0', '172.31.255.255', '192.0.0.0', '192.0.0.255', '192.0.2.1', '192.88.99.0'],
  ...['192.88.99.255', '192.168.0.0', '192.168.255.255', '198.18.0.0', '198.19.255.255'],
  ...['198.51.100.7', '203.0.113.255', '224.0.0.0', '239.255.255.255', '240.0.0.0'],
  ...['255.255.255.255', '::', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:8.8.8.8'],
  ...['::7f00:1', '::127.0.0.1', '::ffff:0:7f00:1', '::5efe:7f00:1', '::8.8.8.8'],
  ...['64:ff9b::7f00:1', '64:ff9b::10.0.0.1', '64:ff9b::a9fe:a9fe', '64:ff9b::ffff:ffff'],
  ...['64:ff9b:0:0:0:1:808:808', '64:ff9b:1::808:808', '64:ff9b:ffff::1', '64:ff9a::808:808'],
  ...['100::1', '100:0:0:0:ffff::1', '2001::1', '2001:0:53aa:64c::1', '2001:1ff:ffff::1'],
  ...['2001:db8::1', '2001:db8:ffff::1', '2002::1', '2002:7f00:1::', '2002:808:808::1'],
  ...['3fff::1', '3fff:fff:ffff::1', '5f00::1', 'fc00::1', 'fd00:ec2::254', 'fd7a:115c:a1e0::1'],
  ...['fdff:ffff::1', 'fe80::1', 'fe80::1%eth0', 'febf::1', 'fec0::1', 'feff::1', 'ff00::1'],
  ...['ff02::1', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '4000::1', '1fff::1'],
]

const allowed = [
  ...['1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.254', '100.128.0.1'],
  ...['126.255.255.255', '128.0.0.0', '169.253.255.255', '169.255.0.0', '172.15.255.255'],
  ...['172.32.0.0', '191.255.255.255', '192.0.1.0', '192.0.3.0', '192.88.98.255', '192.88.100.1'],
  ...['192.167.255.255', '192.169.0.0', '198.17.255.255', '198.20.0.0', '198.51.99.255'],
  ...['198.51.101.0', '203.0.112.255', '203.0.114.0', '223.255.255.255'],
  ...['2606:4700:4700::1111', '2001:4860:4860::8888', '2001:200::1', '2001:db7:ffff::1'],
  ...['2001:db9::1', '2003::1', '2000::1', '3ffe:ffff::1', '3fff:1000::1', '64:ff9b::808:808'],
  ...['64:ff9b::8.8.8.8', '64:FF9B::1.1.1.1', '2001:4860:4860:0:0:0:0:8888'],
]

test.each(forbidden)('no delivery may reach %s', (ip) => {
  expect(isForbiddenAddress(ip)).toBe(true)
  expect(isRefusedAddress(ip, live)).toBe(true)
  expect(isRefusedAddress(ip, sandbox)).toBe(true)
})

test.each(allowed)('%s stays reachable', (ip) => {
  expect(isForbiddenAddress(ip)).toBe(false)
  expect(isRefusedAddress(ip, live)).toBe(false)
})

test.each([
  ...['', 'localhost', '127.1', '0x7f.0.0.1', '0177.0.0.1', '2130706433', '1.2.3', '1.2.3.4.5'],
  ...['256.1.1.1', '1.1.1.1 ', '01.1.1.1', '+1.1.1.1', '1.1.1.1/8', '2606::4700::1', '2606:4700'],
  ...['[2606:4700::1]', '2606:4700:0:0:0:0:0:0:1', '2606:47000::1', '1.1.1.1::', '2606::1.1.1.1:1'],
  ...['2606:4700:1.1.1.1::', ':2606::1', '2606:4700:4700:1:2:3:4::1:2', '2606:4700::1%1', ':::'],
])('%j is no address that we would dial', (text) => {
  expect(isForbiddenAddress(text)).toBe(true)
})

/** The same law written down a second time, with another library and other arithmetic. */
const reserved = new BlockList()
for (const [net, bits] of [
  ...([
    ['0.0.0.0', 8],
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['127.0.0.0', 8],
  ] as const),
  ...([
    ['169.254.0.0', 16],
    ['172.16.0.0', 12],
    ['192.0.0.0', 24],
    ['192.0.2.0', 24],
  ] as const),
  ...([
    ['192.88.99.0', 24],
    ['192.168.0.0', 16],
    ['198.18.0.0', 15],
    ['198.51.100.0', 24],
  ] as const),
  ...([
    ['203.0.113.0', 24],
    ['224.0.0.0', 3],
  ] as const),
]) {
  reserved.addSubnet(net, bits, 'ipv4')
}

const toBigInt = (groups: readonly number[]) =>
  groups.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n)

/** Exact for 2000::/3; outside of it everything but NAT64 of a public address is forbidden. */
function isForbiddenV6(groups: readonly number[]): boolean {
  const value = toBigInt(groups)
  if (value >> 32n === 0x64ff9bn << 64n) {
    const inner = Number(value & 0xffff_ffffn)
    return reserved.check(
      [inner >>> 24, inner >>> 16, inner >>> 8, inner].map((n) => n & 255).join('.'),
    )
  }
  const top = value >> 96n
  if (value >> 125n !== 1n) return true
  if (top >= 0x2001_0000n && top <= 0x2001_01ffn) return true
  if (top === 0x2001_0db8n || top >> 16n === 0x2002n) return true
  return top >= 0x3fff_0000n && top <= 0x3fff_0fffn
}

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
/** RFC 5952 spelling, by the URL standard's own serializer. */
const compress = (groups: readonly number[]) =>
  new URL(`http://[${spell(groups)}]`).hostname.slice(1, -1)
const runs = { numRuns: 2_000 }

test('every IPv4 address has the verdict of the independent table', () => {
  fc.assert(
    fc.property(v4, (bytes) => isForbiddenAddress(dotted(bytes)) === reserved.check(dotted(bytes))),
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

test('every address of 6to4 is forbidden, whatever IPv4 it wraps', () => {
  fc.assert(
    fc.property(v6, ([, ...rest]) => isForbiddenAddress(spell([0x2002, ...rest]))),
    runs,
  )
})

test('every address of ::/8 but NAT64 is forbidden: mapped, compatible, SIIT, ISATAP', () => {
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
])('a sandbox on a private network may reach %s, and nobody else', (ip) => {
  expect(isRefusedAddress(ip, privateSandbox)).toBe(false)
  expect(isRefusedAddress(ip, sandbox)).toBe(true)
  expect(isRefusedAddress(ip, live)).toBe(true)
})

test.each([
  ...['169.254.169.254', 'fd00:ec2::254', '0.0.0.0', '::', '224.0.0.1', '255.255.255.255'],
  ...['::ffff:127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::', 'fe80::1', '100.64.0.1', 'nonsense'],
])('not even a sandbox on a private network may reach %s', (ip) => {
  expect(isRefusedAddress(ip, privateSandbox)).toBe(true)
})

const spelledLoopback = [
  ...['127.0.0.1', '127.1', '0x7f.1', '0177.0.0.1', '017700000001', '2130706433', '0', '0.0.0.0'],
  ...['127.00.0x1', '①②⑦.⓪.⓪.①', '127.0.0.1.', '0251.0376.0251.0376', '%31%32%37.0.0.1'],
  ...['[::1]', '[::]', '[::ffff:7f00:1]', '[::ffff:127.0.0.1]', '[::7f00:1]', '[64:ff9b::7f00:1]'],
  ...['[2002:7f00:1::]', '[fd00:ec2::254]', '[fe80::1]', '169.254.169.254', '10.0.0.1'],
]

test.each(spelledLoopback)('the literal %s is refused when it is saved', (host) => {
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
])('the private name %s is refused when it is saved', (host) => {
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
])('the URL %j is refused', (text) => {
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
])('not even a sandbox on a private network may save %s', (text) => {
  expect(checkWebhookUrl(text, privateSandbox)).toMatchObject({ ok: false })
})
