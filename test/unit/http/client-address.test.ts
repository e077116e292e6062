/** The client's address behind proxies: one spelling for one client, whatever a proxy writes. */
import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createClientAddresses } from '../../../shared/io/http/client-address.ts'

const trusted = ['10.0.0.0/8', '2001:db8:aaaa::/48', '::1']

const addressOf = (forwarded: string | undefined, peer: string | undefined = '10.0.0.1') =>
  createClientAddresses(trusted).of({
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
    socket: { remoteAddress: peer },
  } as unknown as IncomingMessage)

describe('the address of a client', () => {
  it.each([
    // As it is.
    ['203.0.113.8', '203.0.113.8'],
    ['2001:db8::1', '2001:db8::1'],
    // With the port of the connection, as Azure's gateways and others write it.
    ['203.0.113.8:50000', '203.0.113.8'],
    ['[2001:db8::1]:443', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    // Other spellings of one address.
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['2001:0db8::0001', '2001:db8::1'],
    ['::ffff:203.0.113.8', '203.0.113.8'],
    ['::ffff:cb00:7108', '203.0.113.8'],
    ['[::ffff:203.0.113.8]:50000', '203.0.113.8'],
    ['fe80::1%eth0', 'fe80::1'],
    // Trusted proxies in front of the peer, with a port too.
    ['203.0.113.8:50000, 10.1.2.3:4711', '203.0.113.8'],
    ['203.0.113.8, [2001:db8:aaaa::7]:443, ::ffff:10.1.2.3', '203.0.113.8'],
    ['192.0.2.1, 203.0.113.8:1, 10.1.2.3', '203.0.113.8'],
    // All are trusted: the farthest.
    ['10.9.9.9, 10.1.2.3', '10.9.9.9'],
  ])('of %s is %s', (forwarded, address) => {
    expect(addressOf(forwarded)).toBe(address)
  })

  it.each([
    ...['unknown', '_hidden', 'example.com', 'x'.repeat(100), '', ' ', ','],
    ...['203.0.113.8:port', '203.0.113.8:', '203.0.113.8:123456', '203.0.113.256', '203.0.113'],
    ...['2001:db8::1:::1', '[2001:db8::1', '2001:db8::1]:443', '[203.0.113.8]:1', '0x7f.1'],
    ...['203.0.113.08', '1:203.0.113.8', '[[2001:db8::1]]:1', '203.0.113.8 203.0.113.9'],
  ])('that is none, %j, is the address of the proxy that wrote it', (forwarded) => {
    expect(addressOf(forwarded)).toBe('10.0.0.1')
    if (forwarded.trim() !== '' && !forwarded.includes(',')) {
      expect(addressOf(`192.0.2.1, ${forwarded}, 10.1.2.3`)).toBe('10.1.2.3')
    }
  })

  it('is that of the connection, in the same spelling, without a trusted proxy', () => {
    expect(addressOf('203.0.113.8', '::ffff:192.0.2.7')).toBe('192.0.2.7')
    expect(addressOf('203.0.113.8', '2001:DB8::7')).toBe('2001:db8::7')
    expect(addressOf('203.0.113.8', '::ffff:10.0.0.1')).toBe('203.0.113.8')
    expect(addressOf(undefined, '::ffff:10.0.0.1')).toBe('10.0.0.1')
    expect(createClientAddresses([]).of({ headers: {}, socket: {} } as IncomingMessage)).toBe(
      'unknown',
    )
  })
})
