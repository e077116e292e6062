// Where an event comes from: what is kept of an address, and whether its country contradicts the
// phone. The address is only looked at for a sender whose signature holds.
import { createSecretKey, hash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatAddress, parseAddress, parseNetwork } from '#shared/core/network/address.ts'
import type { NetworkSources } from '#shared/core/network/connection.ts'
import { findCountryMismatch } from '#shared/core/network/country-mismatch.ts'
import { eventConnectionSchema } from '#shared/core/network/event-connection.ts'
import { measureConnection } from '#shared/core/network/measure-connection.ts'
import { parseNetworkList } from '#shared/core/network/network-list.ts'
import type { Signals } from '#shared/core/signals/signal-definition.ts'

const list = parseNetworkList('8.8.0.0/16\n2a00:1450::/32\n')
if ('fault' in list) throw new Error(list.fault)
const sources: NetworkSources = {
  databases: [],
  lists: [{ kind: 'hosting', table: list.table }],
  measuredKinds: 1,
}
const addressKey = createSecretKey(Buffer.alloc(32, 7))
const measure = (text: string, isStored = false) =>
  measureConnection(sources, text, { addressKey, isStored })

describe('what is kept of an address', () => {
  it('is its network, and a hash that has 132 bits of the keyed one', () => {
    const found = measure('8.8.4.4')!
    expect(found.head).toMatchObject({ network: '8.8.4.0/24' })
    expect(found.head.address_hash).toMatch(/^[\w-]{22}$/)
    expect(found.head).not.toHaveProperty('address')
    expect(measure('8.8.4.4', true)!.head.address).toBe('8.8.4.4')
  })

  it('is the same for every spelling of it', () => {
    for (const [one, other] of [
      ['8.8.4.4', '::ffff:8.8.4.4'],
      ['8.8.4.4', '::FFFF:0808:0404'],
      ['2a00:1450::1', '2A00:1450:0:0:0:0:0:1'],
    ] as const) {
      expect(measure(one, true)).toEqual(measure(other, true))
    }
  })

  it('needs the key: no hash of the address alone gives it', () => {
    const { address_hash: keyed } = measure('8.8.4.4')!.head
    const other = measureConnection(sources, '8.8.4.4', {
      addressKey: createSecretKey(Buffer.alloc(32, 8)),
      isStored: false,
    })!
    expect(other.head.address_hash).not.toBe(keyed)
    expect(hash('sha256', '8.8.4.4', 'base64url')).not.toContain(keyed)
  })

  it('is of the address within its network, for all that are measured', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
        const found = measure(text, true)
        if (found === null) return
        expect(eventConnectionSchema.parse(found.head)).toEqual(found.head)
        const words = parseAddress(text)!
        expect(found.head.address).toBe(formatAddress(words))
        const network = parseNetwork(found.head.network)!
        expect(network.length).toBe(words.length === 1 ? 24 : 48)
        expect(measure(formatAddress(network.words))!.head.network).toBe(found.head.network)
      }),
      { numRuns: 2_000 },
    )
  })

  it.each(['', 'unknown', '10.0.0.1', '100.127.255.255', '127.0.0.1', '192.0.2.1', 'fe80::1%eth0'])(
    'is nothing of %j',
    (text) => {
      expect(measure(text)).toBeNull()
    },
  )
})

describe('a country that contradicts the phone', () => {
  const ask = (country: string, ecosystem: Record<string, unknown>) =>
    findCountryMismatch(country, { ecosystem } as unknown as Signals)

  it.each([
    ['VN', { sim_country: 'VN' }, false],
    ['VN', { sim_country: 'vn' }, false],
    ['VN', { sim_country: 'DE' }, true],
    ['VN', { time_zone: 'Asia/Ho_Chi_Minh' }, false],
    ['VN', { time_zone: 'Asia/Saigon' }, false],
    ['IN', { time_zone: 'Asia/Kolkata' }, false],
    ['US', { time_zone: 'US/Pacific' }, false],
    ['AR', { time_zone: 'America/Argentina/Salta' }, false],
    ['NL', { time_zone: 'Europe/Amsterdam' }, false],
    ['VN', { time_zone: 'Europe/Berlin' }, true],
    // Territories that use the SIMs and the time zone of another country.
    ...['IM', 'JE', 'GG'].map((code) => [code, { sim_country: 'GB' }, false] as const),
    ['IM', { time_zone: 'Europe/London' }, false],
    ['GB', { sim_country: 'IM', time_zone: 'Europe/Isle_of_Man' }, false],
    ['AX', { sim_country: 'FI', time_zone: 'Europe/Helsinki' }, false],
    ['SJ', { sim_country: 'NO', time_zone: 'Europe/Oslo' }, false],
    ['LI', { time_zone: 'Europe/Zurich' }, false],
    ['SM', { sim_country: 'IT' }, false],
    ['VA', { time_zone: 'Europe/Rome' }, false],
    ['MC', { time_zone: 'Europe/Paris' }, false],
    ['XK', { time_zone: 'Europe/Belgrade' }, false],
    ['IM', { sim_country: 'FR', time_zone: 'Europe/Paris' }, true],
    // A traveller, and a phone with a foreign SIM at home.
    ['TH', { sim_country: 'VN', time_zone: 'Asia/Bangkok' }, false],
    ['VN', { sim_country: 'VN', time_zone: 'Europe/Berlin' }, false],
    ['US', { sim_country: 'VN', time_zone: 'Asia/Ho_Chi_Minh' }, true],
  ] as const)('%s beside %j: %j', (country, ecosystem, expected) => {
    expect(ask(country, ecosystem)).toBe(expected)
  })

  it.each([
    {},
    { sim_country: null, time_zone: null },
    { sim_country: '' },
    { sim_country: 'Vietnam' },
    { time_zone: 'UTC' },
    { time_zone: 'Etc/GMT+7' },
    { time_zone: 'etc/utc' },
    { time_zone: 'GMT+7' },
    { time_zone: '+07:00' },
    { time_zone: 'Nowhere/At_All' },
    { time_zone: `${'x'.repeat(10_000)}/y` },
  ])('is not measured of %j', (ecosystem) => {
    expect(ask('VN', ecosystem)).toBeNull()
  })

  it('is not measured of a country without a time zone', () => {
    expect(ask('XX', { time_zone: 'Asia/Tokyo' })).toBeNull()
    expect(ask('XX', { sim_country: 'VN' })).toBe(true)
  })

  it('knows each time zone of the runtime in its country', () => {
    for (const country of ['AU', 'BR', 'CN', 'DE', 'ID', 'RU', 'US', 'VN']) {
      const zones = new Intl.Locale(`und-${country}`).getTimeZones()!
      expect(zones.length).toBeGreaterThan(0)
      for (const zone of zones) {
        expect([zone, ask(country, { time_zone: zone })]).toEqual([zone, false])
      }
    }
  })
})
