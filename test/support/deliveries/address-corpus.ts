// The address corpus: addresses that no webhook may reach in any spelling, their neighbours that
// must stay reachable, and a second implementation of the rules, with another library and other
// arithmetic, for tests with random addresses.
import { BlockList } from 'node:net'

/** Every range on the list. */
export const forbiddenRanges = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16'],
  ...['172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16'],
  ...['198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  ...['64:ff9b:1::/48', '100::/64', '2001::/23', '2001::/32', '2001:db8::/32', '2002::/16'],
  ...['3fff::/20', '5f00::/16', 'fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
]

/** Addresses that no public delivery may reach: inside every range, and most of their ends. */
export const forbiddenAddresses = [
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

/** Their neighbours, which must stay reachable. */
export const allowedAddresses = [
  ...['1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.254', '100.128.0.1'],
  ...['126.255.255.255', '128.0.0.0', '169.253.255.255', '169.255.0.0', '172.15.255.255'],
  ...['172.32.0.0', '191.255.255.255', '192.0.1.0', '192.0.3.0', '192.88.98.255', '192.88.100.1'],
  ...['192.167.255.255', '192.169.0.0', '198.17.255.255', '198.20.0.0', '198.51.99.255'],
  ...['198.51.101.0', '203.0.112.255', '203.0.114.0', '223.255.255.255'],
  ...['2606:4700:4700::1111', '2001:4860:4860::8888', '2001:200::1', '2001:db7:ffff::1'],
  ...['2001:db9::1', '2003::1', '2000::1', '3ffe:ffff::1', '3fff:1000::1', '64:ff9b::808:808'],
  ...['64:ff9b::8.8.8.8', '64:FF9B::1.1.1.1', '2001:4860:4860:0:0:0:0:8888'],
]

/** Hosts in spellings of a URL that all mean an address on this list. */
export const spelledHosts = [
  ...['127.0.0.1', '127.1', '0x7f.1', '0177.0.0.1', '017700000001', '2130706433', '0', '0.0.0.0'],
  ...['127.00.0x1', '①②⑦.⓪.⓪.①', '127.0.0.1.', '0251.0376.0251.0376', '%31%32%37.0.0.1'],
  ...['[::1]', '[::]', '[::ffff:7f00:1]', '[::ffff:127.0.0.1]', '[::7f00:1]', '[64:ff9b::7f00:1]'],
  ...[
    '[2002:7f00:1::]',
    '[::ffff:0:7f00:1]',
    '[0:0:0:0:0:0:0:1]',
    '[fd00:ec2::254]',
    '[fe80::1]',
    '169.254.169.254',
    '10.0.0.1',
  ],
]

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

export const toBigInt = (groups: readonly number[]) =>
  groups.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n)

/** @param bytes the four bytes of the address */
export const isForbiddenV4 = (bytes: readonly number[]) => reserved.check(bytes.join('.'))

/** Exact for 2000::/3; everything outside it is forbidden except NAT64 of a public address. */
export function isForbiddenV6(groups: readonly number[]): boolean {
  const value = toBigInt(groups)
  if (value >> 32n === 0x64ff9bn << 64n) {
    const inner = Number(value & 0xffff_ffffn)
    return isForbiddenV4([inner >>> 24, inner >>> 16, inner >>> 8, inner].map((n) => n & 255))
  }
  const top = value >> 96n
  if (value >> 125n !== 1n) return true
  if (top >= 0x2001_0000n && top <= 0x2001_01ffn) return true
  if (top === 0x2001_0db8n || top >> 16n === 0x2002n) return true
  return top >= 0x3fff_0000n && top <= 0x3fff_0fffn
}
