// What a record says is found whatever its vendor calls it; a member of another meaning says nothing.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readRecord } from '#shared/core/network/record-members.ts'

const nothing = {
  country: null,
  latitude: null,
  longitude: null,
  asn: null,
  organization: null,
  kinds: [],
}

const forms: Record<string, [record: unknown, facts: object]> = {
  'GeoLite2 Country': [
    {
      continent: { code: 'EU', geoname_id: 6_255_148, names: { en: 'Europe' } },
      country: { geoname_id: 2_921_044, iso_code: 'DE', names: { en: 'Germany', fr: 'Allemagne' } },
      registered_country: { iso_code: 'US', names: { en: 'United States' } },
    },
    { country: 'DE' },
  ],
  'GeoLite2 City': [
    {
      city: { geoname_id: 1, names: { en: 'Boxford' } },
      country: { iso_code: 'GB' },
      location: { accuracy_radius: 100, latitude: 51.75, longitude: -1.25, time_zone: 'x' },
      postal: { code: 'OX1' },
    },
    { country: 'GB', latitude: 51.75, longitude: -1.25 },
  ],
  'GeoLite2 ASN': [
    { autonomous_system_number: 64_500, autonomous_system_organization: 'Example Net' },
    { asn: 64_500, organization: 'Example Net' },
  ],
  'GeoIP Residential Proxy': [
    { anonymizer_confidence: 85, network_last_seen: '2026-11-02', provider_name: 'example' },
    { kinds: ['proxy'] },
  ],
  'GeoIP Anonymous Plus': [
    { anonymizer_confidence: 99, is_anonymous: true, is_anonymous_vpn: true },
    { kinds: ['vpn'] },
  ],
  'GeoIP2 Anonymous IP': [
    { is_anonymous: true, is_anonymous_vpn: true, is_hosting_provider: true },
    { kinds: ['vpn', 'hosting'] },
  ],
  'GeoIP2 Anonymous IP, proxies': [
    { is_anonymous: true, is_public_proxy: true, is_residential_proxy: true },
    { kinds: ['proxy'] },
  ],
  'GeoIP2 Anonymous IP, Tor': [{ is_tor_exit_node: true }, { kinds: ['tor'] }],
  'GeoIP2 Connection Type': [{ connection_type: 'Cellular' }, { kinds: ['mobile'] }],
  'GeoIP2 Connection Type, a cable': [{ connection_type: 'Cable/DSL' }, {}],
  'GeoIP2 Enterprise': [
    {
      country: { iso_code: 'FR' },
      traits: {
        autonomous_system_number: 64_501,
        autonomous_system_organization: 'Réseau',
        connection_type: 'Corporate',
        user_type: 'hosting',
        is_anonymous_vpn: true,
      },
    },
    { country: 'FR', asn: 64_501, organization: 'Réseau', kinds: ['vpn', 'hosting'] },
  ],
  'DB-IP Country Lite': [
    { continent: { code: 'OC' }, country: { iso_code: 'AU', is_in_european_union: false } },
    { country: 'AU' },
  ],
  'DB-IP City Lite': [
    {
      city: { names: { en: 'Brisbane' } },
      country: { iso_code: 'AU', names: { en: 'Australia' } },
      location: { latitude: -27.4698, longitude: 153.025 },
      subdivisions: [{ names: { en: 'Queensland' } }],
    },
    { country: 'AU', latitude: -27.4698, longitude: 153.025 },
  ],
  'DB-IP ASN Lite': [
    { autonomous_system_number: 64_502, autonomous_system_organization: 'Example' },
    { asn: 64_502, organization: 'Example' },
  ],
  'IPinfo Lite': [
    {
      as_domain: 'example.net',
      as_name: 'Example LLC',
      asn: 'AS64503',
      continent: 'Europe',
      continent_code: 'EU',
      country: 'Spain',
      country_code: 'ES',
    },
    { country: 'ES', asn: 64_503, organization: 'Example LLC' },
  ],
  'IPinfo Country and ASN of before': [
    {
      country: 'IT',
      country_name: 'Italy',
      asn: 'AS64504',
      name: 'Esempio',
      domain: 'x',
      type: 'isp',
    },
    { country: 'IT', asn: 64_504, organization: 'Esempio' },
  ],
  'IPinfo ASN, a hoster': [
    { asn: 'AS64505', type: 'hosting' },
    { asn: 64_505, kinds: ['hosting'] },
  ],
  'IPinfo Location': [
    { city: 'Oslo', country: 'NO', lat: '59.91273', lng: '10.74609', postal_code: '0001' },
    { country: 'NO', latitude: 59.912_73, longitude: 10.746_09 },
  ],
  'IPinfo Privacy': [
    { hosting: 'true', proxy: '', relay: 'false', tor: 'true', vpn: '', service: 'x' },
    { kinds: ['tor', 'hosting'] },
  ],
  'IPinfo Privacy, a relay': [{ hosting: false, relay: true, vpn: false }, { kinds: ['relay'] }],
  'IPinfo Plus': [
    {
      geo: { country_code: 'SE', latitude: 59.33, longitude: 18.06 },
      as: { asn: 'AS64506', name: 'Exempel', type: 'hosting' },
      anonymous: { is_proxy: false, is_relay: false, is_tor: false, is_vpn: true, name: 'x' },
      is_hosting: true,
      is_mobile: true,
    },
    {
      country: 'SE',
      latitude: 59.33,
      longitude: 18.06,
      asn: 64_506,
      organization: 'Exempel',
      kinds: ['vpn', 'hosting', 'mobile'],
    },
  ],
  'IPinfo carriers': [{ carrier: 'Example Mobile', mcc: '001', mnc: '01' }, { kinds: ['mobile'] }],
  'ip-location-db country': [{ country_code: 'JP' }, { country: 'JP' }],
  'ip-location-db city': [
    { city: 'Tokyo', country_code: 'JP', latitude: 35.69, longitude: 139.69, state1: 'Tokyo' },
    { country: 'JP', latitude: 35.69, longitude: 139.69 },
  ],
  'ip-location-db ASN': [
    { autonomous_system_number: 64_507, autonomous_system_organization: 'Rei' },
    { asn: 64_507, organization: 'Rei' },
  ],
}

describe('a record', () => {
  it.each(Object.entries(forms))('of %s', (_name, [record, facts]) => {
    const found = readRecord(record)
    const expected = { ...nothing, ...facts }
    if (Object.keys(facts).length === 0) expect(found).toBeNull()
    else
      expect({ ...found, kinds: found!.kinds.sort() }).toEqual({
        ...expected,
        kinds: expected.kinds.toSorted(),
      })
  })

  it.each([
    [{ country: 'Germany' }],
    [{ country_code: 'ZZ' }],
    [{ country_code: '-' }],
    [{ autonomous_system_number: 0 }],
    [{ autonomous_system_number: 2 ** 32 }],
    [{ asn: 'ASN64500' }],
    [{ asn: '' }],
    [{ latitude: 12 }],
    [{ location: { latitude: 91, longitude: 0 } }],
    [{ is_anonymous_vpn: false, is_tor_exit_node: 0 }],
    [{ domain: 'example.net' }],
    [{}],
    ['text'],
    [null],
    [[1]],
  ])('%j says nothing', (record) => {
    expect(readRecord(record)).toBeNull()
  })

  it('never fails, and gives nothing of another type', () => {
    fc.assert(
      fc.property(fc.anything({ maxDepth: 4, withNullPrototype: true }), (record) => {
        readRecord(record)
      }),
    )
    const names = [
      'country',
      'country_code',
      'asn',
      'latitude',
      'longitude',
      'vpn',
      'name',
      'traits',
    ]
    const odd = fc.dictionary(fc.constantFrom(...names), fc.anything({ maxDepth: 2 }))
    fc.assert(
      fc.property(odd, (record) => {
        const facts = readRecord(record)
        if (facts === null) return
        if (facts.country !== null) expect(facts.country).toMatch(/^[A-Z]{2}$/)
        if (facts.asn !== null) expect(facts.asn).toBeGreaterThan(0)
        expect(facts.latitude === null).toBe(facts.longitude === null)
      }),
      { numRuns: 1_000 },
    )
  })

  it('keeps the beginning of a long name, well formed', () => {
    const facts = readRecord({ as_name: `${'x'.repeat(127)}😀${'y'.repeat(5_000)}` })
    expect(facts?.organization).toHaveLength(128)
    expect(facts?.organization?.isWellFormed()).toBe(true)
  })
})
