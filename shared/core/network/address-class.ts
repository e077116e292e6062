/**
 * Which addresses say something of a client's network: by IANA's registries of special-purpose
 * addresses, where the longest match counts. Of IPv6 only 2000::/3 is given out.
 */
import { type AddressWords, containsNetwork, type Network, parseNetwork } from './address.ts'
import { buildTable, findValue } from './range-table.ts'

/** `global` addresses are routed in the internet. Nothing is measured of the others. */
export const addressClasses = [
  'global',
  'loopback',
  'private',
  'link_local',
  'unique_local',
  'documentation',
  'cgnat',
  'tunnel',
  'multicast',
  'reserved',
] as const
export type AddressClass = (typeof addressClasses)[number]

const specialNetworks: readonly (readonly [network: string, name: AddressClass])[] = [
  ['0.0.0.0/8', 'reserved'],
  ['10.0.0.0/8', 'private'],
  ['100.64.0.0/10', 'cgnat'],
  ['127.0.0.0/8', 'loopback'],
  ['169.254.0.0/16', 'link_local'],
  ['172.16.0.0/12', 'private'],
  ['192.0.0.0/24', 'reserved'],
  ['192.0.2.0/24', 'documentation'],
  ['192.88.99.0/24', 'reserved'],
  ['192.168.0.0/16', 'private'],
  ['198.18.0.0/15', 'reserved'],
  ['198.51.100.0/24', 'documentation'],
  ['203.0.113.0/24', 'documentation'],
  ['224.0.0.0/4', 'multicast'],
  ['240.0.0.0/4', 'reserved'],
  ['::/0', 'reserved'],
  ['::1/128', 'loopback'],
  ['2000::/3', 'global'],
  // Teredo and 6to4: the address of a relay, with that of a client within it.
  ['2001::/32', 'tunnel'],
  ['2002::/16', 'tunnel'],
  ['2001:2::/48', 'reserved'],
  ['2001:10::/28', 'reserved'],
  ['2001:20::/28', 'reserved'],
  ['2001:db8::/32', 'documentation'],
  ['3fff::/20', 'documentation'],
  ['fc00::/7', 'unique_local'],
  ['fe80::/10', 'link_local'],
  ['ff00::/8', 'multicast'],
]

const registered = specialNetworks.map(([text, name]) => {
  const network = parseNetwork(text)
  if (network === null) throw new Error(`${text} is not a network`)
  return { ...network, name }
})

const classes = buildTable(
  registered.map(({ name, ...network }) => ({ ...network, value: addressClasses.indexOf(name) })),
)

/** The class of an address; IPv4 outside the registry is `global`. */
export const classOf = (words: AddressWords): AddressClass =>
  addressClasses[findValue(classes, words)]!

/**
 * The class of a network: that of the longest special network that contains all of it. A network
 * that only has special ones within is not of their class.
 */
export function classOfNetwork(network: Network): AddressClass {
  const around = registered.filter((special) => containsNetwork(special, network))
  return around.sort((a, b) => b.length - a.length)[0]?.name ?? 'global'
}
