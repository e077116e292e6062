/** What an entry of a list can be for: its one spelling, or why it is refused. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ListKind } from '#shared/core/lists/list-entry.ts'
import { isImpersonal, parseListedId } from '#shared/core/lists/listed-ids.ts'
import { formatAddress, parseNetwork } from '#shared/core/network/address.ts'
import { classOf } from '#shared/core/network/address-class.ts'
import { countryCodes } from '#shared/core/network/countries.ts'

const idOf = (kind: ListKind, text: string) => {
  const parsed = parseListedId(kind, text)
  return 'id' in parsed ? parsed.id : null
}
const faultOf = (kind: ListKind, text: string) => {
  const parsed = parseListedId(kind, text)
  return 'fault' in parsed ? parsed.fault : null
}

describe('a network', () => {
  it.each([
    ['8.8.8.0/24', '8.8.8.0/24'],
    [' 8.8.8.0/24 ', '8.8.8.0/24'],
    ['8.8.8.8', '8.8.8.8/32'],
    ['8.0.0.0/8', '8.0.0.0/8'],
    // IPv6 that only maps IPv4 is IPv4.
    ['::ffff:8.8.8.0/120', '8.8.8.0/24'],
    ['::FFFF:808:808', '8.8.8.8/32'],
    ['2A00:0:0::/32', '2a00::/32'],
    ['2a00:1450:4001:80b:0:0:0:200e', '2a00:1450:4001:80b::200e/128'],
    // A part of it is special, which is not all of it.
    ['192.0.0.0/8', '192.0.0.0/8'],
    ['2001::/16', '2001::/16'],
    ['2001::/27', '2001::/27'],
  ])('%j is kept as %s', (text, id) => {
    expect(parseListedId('network', text)).toEqual({ id })
  })

  it.each([
    ['', 'must be a network in CIDR notation'],
    ['8.8.8', 'must be a network in CIDR notation'],
    ['8.8.8.0/33', 'must be a network in CIDR notation'],
    ['8.8.8.0/024', 'must be a network in CIDR notation'],
    ['8.8.8.0/', 'must be a network in CIDR notation'],
    ['8.8.8.0-8.8.8.255', 'must be a network in CIDR notation'],
    ['010.8.8.0/24', 'must be a network in CIDR notation'],
    ['fe80::1%eth0', 'must be a network in CIDR notation'],
    ['example.com', 'must be a network in CIDR notation'],
    ['8.8.8.8/24', 'has bits behind its prefix; the network with this prefix is 8.8.8.0/24'],
    ['2a00:1::1/32', 'has bits behind its prefix; the network with this prefix is 2a00:1::/32'],
    ['0.0.0.0/0', 'is too wide: the widest network of IPv4 that can be listed is a /8'],
    ['8.8.8.8/0', 'is too wide: the widest network of IPv4 that can be listed is a /8'],
    ['8.0.0.0/7', 'is too wide: the widest network of IPv4 that can be listed is a /8'],
    ['::ffff:0:0/96', 'is too wide: the widest network of IPv4 that can be listed is a /8'],
    ['::/0', 'is too wide: the widest network of IPv6 that can be listed is a /16'],
    ['2000::/3', 'is too wide: the widest network of IPv6 that can be listed is a /16'],
    ['10.1.0.0/16', 'is in a private network, from which no connection is measured'],
    ['10.0.0.0/8', 'is in a private network, from which no connection is measured'],
    ['192.168.1.7', 'is in a private network, from which no connection is measured'],
    ['::ffff:192.168.1.7', 'is in a private network, from which no connection is measured'],
    ['127.0.0.1', 'is in a loopback network, from which no connection is measured'],
    ['100.64.0.0/10', 'is in the shared network of carriers'],
    ['203.0.113.0/24', 'is in a network for documentation'],
    ['169.254.0.0/16', 'is in a link-local network'],
    ['224.0.0.0/8', 'is in a multicast network'],
    ['250.0.0.0/8', 'is in a reserved network'],
    ['2001:db8::/32', 'is in a network for documentation'],
    ['2002:808::/32', 'is in a network of tunnels'],
    ['fd00::/16', 'is in a private network'],
    ['::1', 'is in a loopback network'],
    ['4000::/16', 'is in a reserved network'],
  ])('%j is refused: it %s', (text, fault) => {
    expect(faultOf('network', text)).toContain(fault)
  })

  it('that is kept is one that reads as itself, with an address that is measured or special in part', () => {
    const octet = fc.integer({ min: 0, max: 255 })
    const v4 = fc.tuple(octet, octet, octet, octet).map((parts) => parts.join('.'))
    const word = fc.integer({ min: 0, max: 0xffff_ffff })
    const v6 = fc.tuple(word, word, word, word).map(formatAddress)
    const text = fc
      .tuple(fc.oneof(v4, v6), fc.integer({ min: 0, max: 128 }))
      .map(([address, length]) => `${address}/${length}`)
    fc.assert(
      fc.property(text, (written) => {
        const id = idOf('network', written)
        if (id === null) return
        expect(idOf('network', id)).toBe(id)
        const { words, length } = parseNetwork(id)!
        expect(length).toBeGreaterThanOrEqual(words.length === 1 ? 8 : 16)
        const bits = 32 * words.length
        if (length === bits) expect(classOf(words)).toBe('global')
      }),
    )
  })
})

describe('an operator', () => {
  it.each([
    ['64500', '64500'],
    ['AS64500', '64500'],
    ['as64500', '64500'],
    ['0064500', '64500'],
    ['1', '1'],
    ['4294967295', '4294967295'],
  ])('%j is kept as %s', (text, id) => {
    expect(parseListedId('asn', text)).toEqual({ id })
  })

  it.each(['0', '', 'AS', '4294967296', '-1', '1.5', '1e3', 'ASN64500', '99999999999', '0x10'])(
    '%j is refused with what it must be',
    (text) => {
      expect(faultOf('asn', text)).toBe(
        'must be the number of an operator, from 1 to 4294967295, such as 64500 or AS64500',
      )
    },
  )
})

describe('a country', () => {
  it('is kept in upper case', () => {
    expect(parseListedId('country', 'de')).toEqual({ id: 'DE' })
    expect(parseListedId('country', 'US')).toEqual({ id: 'US' })
    expect(parseListedId('country', 'xk')).toEqual({ id: 'XK' })
  })

  it.each(['', 'D', 'DEU', 'ZZ', 'XX', 'EU', 'UK', 'SU', 'Germany', '276'])(
    '%j is refused with what it must be',
    (text) => {
      expect(faultOf('country', text)).toContain('must be the code of a country')
    },
  )

  it('has one of 249 codes and XK, and each names a region', () => {
    const names = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' })
    expect(countryCodes).toHaveLength(250)
    expect(countryCodes.filter((code) => names.of(code) === undefined)).toEqual([])
  })
})

describe('a device or a user', () => {
  it('is kept as it is, unless it is a placeholder', () => {
    expect(parseListedId('device', ' Phone-1 ')).toEqual({ id: ' Phone-1 ' })
    expect(parseListedId('user', '8.8.8.8/24')).toEqual({ id: '8.8.8.8/24' })
    expect(faultOf('device', 'unknown')).toBe('is a placeholder that many devices or users share')
    expect(faultOf('user', 'null')).toBe('is a placeholder that many devices or users share')
  })
})

it('what cannot stand for one person is impersonal', () => {
  const rows: [ListKind, string, boolean][] = [
    ['device', 'phone', false],
    ['user', 'anna', false],
    ['network', '8.8.8.0/24', true],
    ['network', '8.8.8.0/25', false],
    ['network', '8.8.8.8/32', false],
    ['network', '2a00:1::/48', true],
    ['network', '2a00:1::/56', false],
    ['asn', '64500', true],
    ['country', 'DE', true],
  ]
  expect(rows.map(([kind, id]) => isImpersonal(kind, id))).toEqual(rows.map(([, , is]) => is))
})
