// Addresses and networks: what is one, in which spelling, of which class, and what is stored of it.
import { BlockList, isIP, isIPv4 } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  formatAddress,
  formatNetwork,
  parseAddress,
  parseNetwork,
  toStoredNetwork,
} from '#shared/core/network/address.ts'
import { type AddressClass, classOf } from '#shared/core/network/address-class.ts'

const anyV4 = fc.ipV4()
const anyV6 = fc.ipV6().filter((text) => !text.includes('.'))

describe('an address', () => {
  it('is what Node knows as one, and nothing else', () => {
    const odd = fc.oneof(
      anyV4,
      fc.ipV6(),
      fc.string({ unit: fc.constantFrom(...'0123456789abcdef:./%x [] ') }),
      fc.constantFrom(
        ...['127.1', '0x7f.0.0.1', '010.0.0.1', '2130706433', '1.2.3.4.5', '1.2.3.256', '::%1'],
        ...['1.2.3.4 ', '', '::1%eth0', '[::1]', ':::', '1::2::3', '::ffff:1.2.3.4', '::1.2.3.4'],
        ...['fe80::1%', '12345::', '::g', '1.2.3', '1.2.3.4:80', '::ffff:01.2.3.4'],
      ),
    )
    fc.assert(
      fc.property(odd, (text) => {
        const isOne = isIP(text) !== 0 && !text.includes('%')
        expect([text, parseAddress(text) !== null]).toEqual([text, isOne])
      }),
      { numRuns: 1_000 },
    )
  })

  it('has one spelling', () => {
    fc.assert(
      fc.property(fc.oneof(anyV4, fc.ipV6()), (text) => {
        const words = parseAddress(text)!
        const spelling = formatAddress(words)
        expect(parseAddress(spelling)).toEqual(words)
        if (isIPv4(text)) expect(spelling).toBe(text)
      }),
    )
    expect(formatAddress(parseAddress('2001:DB8:0:0:1::0001')!)).toBe('2001:db8::1:0:0:1')
    expect(formatAddress(parseAddress('::ffff:cb00:7109')!)).toBe('203.0.113.9')
    expect(parseAddress('::FFFF:203.0.113.9')).toEqual(parseAddress('203.0.113.9'))
    // Deprecated, and not IPv4.
    expect(formatAddress(parseAddress('::203.0.113.9')!)).toBe('::cb00:7109')
  })

  it('is the same however its last four bytes are written', () => {
    fc.assert(
      fc.property(
        fc.ipV6().filter((text) => !text.includes('.')),
        fc.ipV4(),
        (text, tail) => {
          const head = formatAddress(parseAddress(text)!).replace(/[^:]*:[^:]*$/, '')
          fc.pre(head.endsWith(':') && isIP(`${head}${tail}`) === 6)
          const [a, b, c, d] = tail.split('.').map(Number) as [number, number, number, number]
          const hex = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
          expect(parseAddress(`${head}${tail}`)).toEqual(parseAddress(`${head}${hex}`))
        },
      ),
    )
  })
})

describe('a class', () => {
  const classes: Record<string, AddressClass> = {
    '8.8.8.8': 'global',
    '::ffff:8.8.8.8': 'global',
    '2a00:1450:4001::8': 'global',
    '127.0.0.1': 'loopback',
    '127.255.255.255': 'loopback',
    '::1': 'loopback',
    '::ffff:127.0.0.1': 'loopback',
    '10.0.0.0': 'private',
    '9.255.255.255': 'global',
    '11.0.0.0': 'global',
    '172.15.255.255': 'global',
    '172.16.0.0': 'private',
    '172.31.255.255': 'private',
    '172.32.0.0': 'global',
    '192.168.255.255': 'private',
    '192.169.0.0': 'global',
    '169.254.1.1': 'link_local',
    'fe80::1': 'link_local',
    'febf::1': 'link_local',
    'fec0::1': 'reserved',
    'fc00::1': 'unique_local',
    'fdff::1': 'unique_local',
    '192.0.2.1': 'documentation',
    '198.51.100.255': 'documentation',
    '203.0.113.0': 'documentation',
    '2001:db8::1': 'documentation',
    '3fff:fff::1': 'documentation',
    '3fff:1000::1': 'global',
    '100.63.255.255': 'global',
    '100.64.0.0': 'cgnat',
    '100.127.255.255': 'cgnat',
    '100.128.0.0': 'global',
    '2002:808:808::1': 'tunnel',
    '2001::1': 'tunnel',
    '2001:200::1': 'global',
    '224.0.0.1': 'multicast',
    'ff02::1': 'multicast',
    '255.255.255.255': 'reserved',
    '0.0.0.0': 'reserved',
    '::': 'reserved',
    '64:ff9b::808:808': 'reserved',
    '4000::1': 'reserved',
  }

  it.each(Object.entries(classes))('of %s is %s', (text, expected) => {
    expect(classOf(parseAddress(text)!)).toBe(expected)
  })
})

describe('a network', () => {
  it.each([
    ['203.0.113.0/24', '203.0.113.0/24'],
    ['203.0.113.9', '203.0.113.9/32'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['2001:DB8::/32', '2001:db8::/32'],
    ['2001:db8::1', '2001:db8::1/128'],
    ['::ffff:203.0.113.0/120', '203.0.113.0/24'],
    ['2001:db8:8000::/33', '2001:db8:8000::/33'],
  ])('%s is %s', (text, spelling) => {
    expect(formatNetwork(parseNetwork(text)!)).toBe(spelling)
  })

  it.each([
    ...['203.0.113.9/24', '203.0.113.0/33', '203.0.113.0/', '203.0.113.0/024', '/24', ''],
    ...['203.0.113.0/-1', '203.0.113.0/24/8', '2001:db8::/129', '2001:db8::1/64', 'AS64500'],
    ...['::ffff:203.0.113.0/24', '203.0.113/24', '203.0.113.0-203.0.113.255', '1.2.3.4/ 8'],
  ])('%j is none', (text) => {
    expect(parseNetwork(text)).toBeNull()
  })

  it('is stored of an address as its /24 or /48, which contains it', () => {
    fc.assert(
      fc.property(fc.oneof(anyV4, anyV6), (text) => {
        const words = parseAddress(text)!
        const stored = toStoredNetwork(words)
        const [first, length] = stored.split('/') as [string, string]
        const family = words.length === 1 ? 'ipv4' : 'ipv6'
        expect(length).toBe(words.length === 1 ? '24' : '48')
        const block = new BlockList()
        block.addSubnet(first, Number(length), family)
        expect(block.check(formatAddress(words), family)).toBe(true)
        expect(formatNetwork(parseNetwork(stored)!)).toBe(stored)
      }),
    )
    expect(toStoredNetwork(parseAddress('203.0.113.77')!)).toBe('203.0.113.0/24')
    expect(toStoredNetwork(parseAddress('2001:db8:1:2::3')!)).toBe('2001:db8:1::/48')
  })
})
