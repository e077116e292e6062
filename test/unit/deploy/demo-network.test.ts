// The demo's network data: an edge reads all of it, and every address that a simulated phone has
// is one that it knows.
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAddress } from '#shared/core/network/address.ts'
import { findConnection, toKindNames } from '#shared/core/network/connection.ts'
import { isCountryCode } from '#shared/core/network/countries.ts'
import { toKilometres } from '#shared/core/network/distance.ts'
import { createNetworkData, type NetworkData } from '#shared/io/network/network-data.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { addressOf, isCommuter, roamingAddressOf } from '../../../deploy/fleet/phones/addresses.ts'
import { makePopulation } from '../../../deploy/fleet/phones/population.ts'
import { demoNetworkEnv } from '../../../deploy/local/network/demo-network.ts'
import { testLog } from '../../support/http/console-rig.ts'

const nowMs = Date.UTC(2026, 2, 2)
let dataDir: string
let env: Record<string, string>
let data: NetworkData
beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'demo-network-'))
  env = demoNetworkEnv({ dataDir, env: {} }, nowMs)
  data = createNetworkData({
    folder: env.NETWORK_DATA!,
    measuresDocumentation: env.NETWORK_DATA_DOCUMENTATION === '1',
    log: testLog,
    metrics: createMetrics('test'),
    wallMs: () => nowMs,
  })
  await data.look()
})
afterAll(() => rmSync(dataDir, { recursive: true, force: true }))

function find(address: string) {
  const words = parseAddress(address)!
  const { country, asn, organization, kinds, latitude, longitude } = findConnection(
    data.sources()!,
    words,
  )!
  const place = { latitude: latitude!, longitude: longitude! }
  return { country, asn, organization, kinds: toKindNames(kinds), place }
}

describe('the folder', () => {
  it('is private in the data folder, and is written again at every start', () => {
    expect(env.NETWORK_DATA).toBe(join(dataDir, 'network'))
    demoNetworkEnv({ dataDir, env: {} }, nowMs)
    const names = readdirSync(env.NETWORK_DATA!).sort()
    expect(names).toEqual(['demo.mmdb', 'hosting.txt', 'vpn.txt'])
    expect(statSync(env.NETWORK_DATA!).mode & 0o777).toBe(0o700)
  })

  it('is read whole by an edge', () => {
    const place = ['country', 'coordinates', 'asn', 'organization']
    expect(data.warning()).toBeNull()
    expect(data.status()).toMatchObject([
      { file: 'demo.mmdb', state: 'in_use', gives: place, built_at: '2026-03-02T00:00:00.000Z' },
      { file: 'hosting.txt', state: 'in_use', gives: ['hosting'], networks: 1 },
      { file: 'vpn.txt', state: 'in_use', gives: ['vpn'], networks: 1 },
    ])
  })

  it('is left to the user who names one, or none', () => {
    const own = join(dataDir, 'own')
    for (const NETWORK_DATA of [own, '']) {
      expect(demoNetworkEnv({ dataDir: own, env: { NETWORK_DATA } }, nowMs)).toEqual({})
    }
    expect(readdirSync(dataDir)).toEqual(['network'])
  })
})

describe('the addresses of the fleet', () => {
  const phones = makePopulation(1, 2_000)
  const farms = ['emulator-farm', 'cloud-phone', 'account-farm', 'test-emulator']

  it('are those of a data centre for farms, of a VPN for who has one, else of homes', () => {
    for (const phone of phones) {
      const name = phone.kind.name
      const { country, organization, kinds } = find(addressOf(phone))
      const expected = farms.includes(name)
        ? ['NL', 'Example Hosting', 'hosting']
        : name.startsWith('vpn-')
          ? ['CH', 'Example Privacy VPN', 'vpn']
          : name.startsWith('stock-')
            ? ['BE', 'Example Home Broadband', '']
            : null
      if (expected === null) expect(isCountryCode(country!)).toBe(true)
      else expect([name, country, organization, kinds.join(' ')]).toEqual([name, ...expected])
    }
  })

  it('are in one network for all honest phones of a person, and seldom in that of another', () => {
    const people = phones.filter(({ kind }) => kind.name.startsWith('stock-'))
    const networks = new Map<string, Set<string>>()
    for (const phone of people) {
      const person = phone.users[0] ?? phone.deviceId
      const network = addressOf(phone).split('::')[0]!
      networks.set(person, (networks.get(person) ?? new Set()).add(network))
    }
    expect(networks.size).toBeGreaterThan(1_000)
    expect([...networks.values()].filter(({ size }) => size > 1)).toEqual([])
    const different = new Set([...networks.values()].flatMap((some) => [...some]))
    expect(different.size / networks.size).toBeGreaterThan(0.95)
  })

  it('beyond the border are too near for a journey to be impossible', () => {
    const commuters = phones.filter(isCommuter)
    expect(commuters.length).toBeGreaterThan(100)
    const home = find('2001:db8::1')
    for (const phone of commuters) {
      const abroad = find(roamingAddressOf(phone))
      expect(abroad).toMatchObject({ country: 'LU', organization: 'Example Mobile', kinds: [] })
      expect(toKilometres(home.place, abroad.place)).toBeLessThan(100)
    }
  })
})
