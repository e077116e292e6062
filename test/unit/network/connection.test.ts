// The signals of an address follow from the databases and lists alone: what is measured is said,
// what is not is left out, and of lists the longest network counts before any database.
import { describe, expect, it } from 'vitest'
import { parseAddress, parseNetwork } from '#shared/core/network/address.ts'
import {
  findConnection,
  type KindList,
  type NetworkDatabase,
  type NetworkSources,
  toMeasuredKinds,
} from '#shared/core/network/connection.ts'
import { createFactWriter } from '#shared/core/network/network-facts.ts'
import { type NetworkKind, parseNetworkList } from '#shared/core/network/network-list.ts'
import { buildTable } from '#shared/core/network/range-table.ts'
import { readRecord } from '#shared/core/network/record-members.ts'
import { signalsOf } from '../../support/network/signals-of.ts'

function toDatabase(records: Record<string, object>): NetworkDatabase {
  const writer = createFactWriter()
  const networks = Object.entries(records).map(([text, record]) => ({
    ...parseNetwork(text)!,
    value: writer.add(readRecord(record)!),
  }))
  return { table: buildTable(networks), facts: writer.finish() }
}

function toList(kind: NetworkKind, ...networks: string[]): KindList {
  const list = parseNetworkList(networks.join('\n'))
  if ('fault' in list) throw new Error(list.fault)
  return { kind, table: list.table }
}

const toSources = (databases: NetworkDatabase[], ...lists: KindList[]): NetworkSources => ({
  databases,
  lists,
  measuredKinds: toMeasuredKinds(databases, lists),
})

const countries = toDatabase({
  '8.8.0.0/16': { country_code: 'DE' },
  '2a00:1450::/32': { country_code: 'IE' },
})
const operators = toDatabase({
  '8.8.8.0/24': { asn: 'AS64500', as_name: 'Örtlich', country_code: 'FR' },
})
const anonymity = toDatabase({
  '8.8.0.0/16': { is_anonymous_vpn: true, is_hosting_provider: true },
  '9.9.9.0/24': { is_public_proxy: true },
})
const ask = signalsOf

describe('signals of an address', () => {
  const all = toSources([countries, operators, anonymity], toList('tor', '8.8.4.4'))

  it('come from every database, the first that knows a country decides it', () => {
    expect(ask(all, '8.8.8.8')).toEqual({
      country: 'DE',
      asn: 'AS64500',
      hosting: true,
      vpn: true,
      tor: false,
      proxy: false,
    })
    expect(ask(toSources([operators, countries]), '8.8.8.8')).toEqual({
      country: 'FR',
      asn: 'AS64500',
    })
    expect(ask(all, '2a00:1450::1')).toMatchObject({ country: 'IE', vpn: false })
    expect(findConnection(all, parseAddress('8.8.8.8')!)?.organization).toBe('Örtlich')
    expect(findConnection(all, parseAddress('8.8.9.8')!)!.organization).toBeNull()
  })

  it('say no only where a source could have said yes', () => {
    expect(ask(toSources([countries]), '1.1.1.1')).toEqual({})
    expect(ask(toSources([countries], toList('vpn', '9.9.9.9')), '1.1.1.1')).toEqual({ vpn: false })
    expect(ask(all, '1.1.1.1')).toEqual({ hosting: false, vpn: false, tor: false, proxy: false })
  })

  it('are not measured of addresses outside the internet, whatever a file says of them', () => {
    const wide = toDatabase({
      '0.0.0.0/0': { country_code: 'DE', vpn: true },
      '::/0': { country_code: 'DE', vpn: true },
    })
    const sources = toSources([wide], toList('vpn', '10.0.0.0/8', '100.64.0.0/10', 'fc00::/16'))
    const unmeasured = [
      ...['127.0.0.1', '10.1.2.3', '100.64.0.1', '192.168.0.1', '169.254.0.1', '203.0.113.1'],
      ...['::1', 'fc00::1', 'fe80::1', '2001:db8::1', '::ffff:10.0.0.1', '2002:808:808::'],
    ]
    for (const text of unmeasured) expect([text, ask(sources, text)]).toEqual([text, null])
    expect(ask(sources, '8.8.8.8')).toEqual({ country: 'DE', vpn: true })
    expect(ask(sources, '2a00::1')).toEqual({ country: 'DE', vpn: true })
  })

  it('follow the list with the longest network, and any list before a database', () => {
    const sources = toSources(
      [anonymity],
      toList('vpn', '8.8.0.0/16', '7.7.7.0/24'),
      toList('relay', '8.8.8.0/24'),
      toList('mobile', '8.8.8.128/25'),
      toList('hosting', '7.7.7.0/24'),
    )
    const on = (text: string) =>
      Object.entries(ask(sources, text)!).flatMap(([name, value]) => (value ? [name] : []))
    expect(on('8.8.1.1')).toEqual(['vpn'])
    expect(on('8.8.8.1')).toEqual(['relay'])
    expect(on('8.8.8.200')).toEqual([])
    expect(on('7.7.7.7')).toEqual(['hosting', 'vpn'])
    expect(on('9.9.9.9')).toEqual(['proxy'])
    expect(on('::ffff:8.8.8.1')).toEqual(['relay'])
  })

  it('know a place as both degrees or none', () => {
    const places = toDatabase({
      '8.8.0.0/16': { latitude: -33.5, longitude: 151.25 },
      '9.9.0.0/16': { latitude: 0, longitude: 0, country_code: 'GH' },
    })
    const find = (text: string) => findConnection(toSources([places]), parseAddress(text)!)
    expect(find('8.8.8.8')).toMatchObject({ latitude: -33.5, longitude: 151.25, country: null })
    expect(find('9.9.9.9')).toMatchObject({ latitude: 0, longitude: 0, country: 'GH' })
    expect(find('1.1.1.1')).toMatchObject({ latitude: null, longitude: null })
  })
})
