// The network data of the demo: invented operators in the networks that are reserved for
// documentation, so that a newcomer sees what connections tell without a file of a vendor. The
// countries are real ones, because lists take no others. A folder of the user's own replaces it.

import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import type { LocalSettings } from '../stack/settings.ts'
import { writeMmdb } from './mmdb-writer.ts'

type Operator = { asn: number; name: string; country: string; city: string; at: [number, number] }

// Numbers are those for documentation, RFC 5398. Home and roaming are near to each other across a
// border, so that a commuter is no impossible travel.
const home: Operator = {
  asn: 64_496,
  name: 'Example Home Broadband',
  country: 'BE',
  city: 'Arlon',
  at: [49.68, 5.82],
}
const roaming: Operator = {
  asn: 64_497,
  name: 'Example Mobile',
  country: 'LU',
  city: 'Luxembourg',
  at: [49.61, 6.13],
}
const privacy: Operator = {
  asn: 64_498,
  name: 'Example Privacy VPN',
  country: 'CH',
  city: 'Zurich',
  at: [47.37, 8.54],
}
const hosting: Operator = {
  asn: 64_499,
  name: 'Example Hosting',
  country: 'NL',
  city: 'Amsterdam',
  at: [52.37, 4.9],
}

const operators: [network: string, operator: Operator][] = [
  ['192.0.2.0/24', roaming],
  ['198.51.100.0/24', privacy],
  ['203.0.113.0/24', hosting],
  ['2001:db8::/32', home],
]

/** The names of the files, and what is in them. */
function makeFiles(nowMs: number): Record<string, string | Buffer> {
  const records = operators.map(([network, operator]) => [network, toRecord(operator)] as const)
  const metadata = {
    database_type: 'Demo',
    description: { en: 'Invented operators in networks for documentation' },
  }
  return {
    'demo.mmdb': writeMmdb(records, { buildEpoch: Math.floor(nowMs / 1_000), metadata }),
    'hosting.txt': `${listOf(hosting)}\n`,
    'vpn.txt': `${listOf(privacy)}\n`,
  }
}

const listOf = (operator: Operator): string =>
  operators
    .filter(([, one]) => one === operator)
    .map(([network]) => `${network} # ${operator.name}`)
    .join('\n')

/** A record as city databases have it, with the operator that they have in a file of its own. */
const toRecord = ({ asn, name, country, city, at: [latitude, longitude] }: Operator) => ({
  country: { iso_code: country },
  city: { names: { en: city } },
  location: { latitude, longitude },
  autonomous_system_number: asn,
  autonomous_system_organization: name,
})

/** The folder in a data folder. */
export const demoNetworkFolder = (dataDir: string): string => join(dataDir, 'network')

/** Whether the user named no folder; an empty name turns the network data off. */
export const usesDemoNetwork = ({ env }: Pick<LocalSettings, 'env'>): boolean =>
  env.NETWORK_DATA === undefined

/** Writes the files, each replaced by one rename. @returns the folder */
export function writeDemoNetwork(dataDir: string, nowMs: number): string {
  const folder = demoNetworkFolder(dataDir)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const [name, content] of Object.entries(makeFiles(nowMs))) {
    const fresh = join(folder, `${name}.${process.pid}.tmp`)
    writeFileSync(fresh, content, { mode: 0o600 })
    renameSync(fresh, join(folder, name))
  }
  return folder
}

/** What an edge and the console have in their environment; nothing with a folder of the user's. */
export function demoNetworkEnv(
  settings: Pick<LocalSettings, 'dataDir' | 'env'>,
  nowMs: number,
): Record<string, string> {
  if (!usesDemoNetwork(settings)) return {}
  const folder = writeDemoNetwork(settings.dataDir, nowMs)
  return { NETWORK_DATA: folder, NETWORK_DATA_DOCUMENTATION: '1' }
}
