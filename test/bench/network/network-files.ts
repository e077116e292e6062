/**
 * Files of network data as large as an operator's: a city, an ASN and an anonymity database and
 * four lists, all invented and the same in every run.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { writeMmdb } from '../../../deploy/local/network/mmdb-writer.ts'

type Sizes = { cities: number; cityNetworks: number; operatorNetworks: number; listed: number }

/** About 180 MiB in all: random networks share little of the tree, so a city has 70 bytes. */
export const largeFiles: Sizes = {
  cities: 200_000,
  cityNetworks: 1_500_000,
  operatorNetworks: 350_000,
  listed: 400_000,
}

/** The same files with a part of their networks. */
export function scaleFiles(sizes: Sizes, share: number): Sizes {
  const entries = Object.entries(sizes).map(([name, count]) => [name, Math.ceil(count * share)])
  return Object.fromEntries(entries) as Sizes
}

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const languages = ['de', 'en', 'es', 'fr', 'ja', 'pt-BR', 'ru', 'zh-CN']

/** One in four networks is IPv6. */
function* networks(count: number, seed: string): Generator<[network: string, at: number]> {
  const random = createRandom(7, seed)
  for (let at = 0; at < count; at++) {
    if (at % 4 === 3) {
      const parts = [random.int(0x2400, 0x2c00), random.int(0, 0xffff), random.int(0, 0xffff)]
      yield [`${parts.map((part) => part.toString(16)).join(':')}::/48`, at]
    } else {
      yield [`${[random.int(1, 223), random.int(0, 255), random.int(0, 255)].join('.')}.0/24`, at]
    }
  }
}

/** @param different how many records there are; networks share them */
function* records(count: number, seed: string, different: number, record: (at: number) => object) {
  const all = Array.from({ length: different }, (_, at) => record(at))
  for (const [network, at] of networks(count, seed)) {
    yield [network, all[(at * 7_919) % different]!] as const
  }
}

const toCountry = (at: number) => `${letters[at % 26]}${letters[(at * 7) % 26]}`

function toCity(at: number) {
  return {
    city: { names: Object.fromEntries(languages.map((name) => [name, `City ${name} ${at}`])) },
    country: { iso_code: toCountry(at), names: { en: `Country ${at % 250}` } },
    location: { latitude: (at % 1_700) / 10 - 84.95, longitude: (at % 3_500) / 10 - 174.95 },
  }
}

/** Writes them. @returns their bytes in all */
export function writeNetworkFiles(folder: string, sizes: Sizes): number {
  const files: Record<string, Buffer | string> = {
    'city.mmdb': writeMmdb(records(sizes.cityNetworks, 'city', sizes.cities, toCity)),
    'asn.mmdb': writeMmdb(
      records(sizes.operatorNetworks, 'asn', 80_000, (at) => ({
        autonomous_system_number: 1 + at,
        autonomous_system_organization: `Operator ${at}`,
      })),
      { recordSize: 24 },
    ),
    'anonymous.mmdb': writeMmdb(
      records(sizes.operatorNetworks, 'anonymous', 300, (at) => ({
        is_anonymous: true,
        is_anonymous_vpn: at % 2 === 0,
        is_hosting_provider: at % 3 === 0,
        is_tor_exit_node: at % 50 === 0,
      })),
      { recordSize: 24 },
    ),
  }
  for (const kind of ['tor', 'vpn', 'hosting', 'proxy']) {
    const lines = [...networks(sizes.listed, kind)].map(([network]) => network)
    files[`${kind}.txt`] = `${lines.join('\n')}\n`
  }
  let bytes = 0
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(folder, name), content)
    bytes += Buffer.byteLength(content)
  }
  return bytes
}

/** Addresses as clients have them: three of four are IPv4. */
export function makeAddresses(count: number): string[] {
  const random = createRandom(8, 'addresses')
  return Array.from({ length: count }, (_, at) => {
    if (at % 4 !== 3) return Array.from({ length: 4 }, () => random.int(1, 223)).join('.')
    const parts = [
      random.int(0x2400, 0x2c00),
      ...Array.from({ length: 7 }, () => random.int(0, 0xffff)),
    ]
    return parts.map((part) => part.toString(16)).join(':')
  })
}
