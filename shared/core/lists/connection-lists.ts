/**
 * The entries of one tenant's lists for networks, operators and countries, as an edge looks them
 * up: a connection costs a binary search and two look-ups, however many entries there are, and a
 * step for each listed network that contains it.
 */
import {
  type AddressWords,
  containsNetwork,
  type Network,
  parseNetwork,
} from '#shared/core/network/address.ts'
import { buildTable, findValue, type RangeTable } from '#shared/core/network/range-table.ts'
import type { ConnectionKind, ListEntry, ListedConnection } from './list-entry.ts'

/** An entry with what it is for, in its one spelling. */
export type ConnectionEntry = ListEntry & { kind: ConnectionKind; id: string }

type ListedNetwork = Network & {
  entries: ListEntry[]
  /** The index of the longest other one that contains it; -1 for none. */
  wider: number
}

export type ConnectionLists = {
  /** The index of the longest listed network that contains an address, plus one. */
  table: RangeTable
  networks: readonly ListedNetwork[]
  asns: ReadonlyMap<string, readonly ListEntry[]>
  countries: ReadonlyMap<string, readonly ListEntry[]>
}

/**
 * Makes entries ready for look-ups.
 * @returns null when the id of a network is none
 */
export function buildConnectionLists(entries: readonly ConnectionEntry[]): ConnectionLists | null {
  const ofKind = (wanted: ConnectionKind) =>
    Map.groupBy(
      entries.filter(({ kind }) => kind === wanted),
      ({ id }) => id,
    )
  const networks: ListedNetwork[] = []
  for (const [id, own] of ofKind('network')) {
    const network = parseNetwork(id)
    if (network === null) return null
    networks.push({ ...network, entries: own, wider: -1 })
  }
  linkWider(networks)
  const table = buildTable(networks.map((network, at) => ({ ...network, value: at + 1 })))
  return { table, networks, asns: ofKind('asn'), countries: ofKind('country') }
}

/** Sorts networks, so that those that contain one stand before it, and links each to the next. */
function linkWider(networks: ListedNetwork[]): void {
  networks.sort((a, b) => compareWords(a.words, b.words) || a.length - b.length)
  const open: number[] = []
  for (const [at, network] of networks.entries()) {
    while (open.length > 0 && !containsNetwork(networks[open.at(-1)!]!, network)) open.pop()
    network.wider = open.at(-1) ?? -1
    open.push(at)
  }
}

/** IPv4 before IPv6, and each by its start. */
function compareWords(a: AddressWords, b: AddressWords): number {
  if (a.length !== b.length) return a.length - b.length
  const at = a.findIndex((word, index) => word !== b[index])
  return at === -1 ? 0 : a[at]! - b[at]!
}

/** The entries for a connection: of its networks, the longest first, its operator, its country. */
export function findConnectionEntries(
  { table, networks, asns, countries }: ConnectionLists,
  { words, country, asn }: ListedConnection,
): readonly ListEntry[] {
  const found: ListEntry[] = []
  for (let at = findValue(table, words) - 1; at !== -1; at = networks[at]!.wider) {
    found.push(...networks[at]!.entries)
  }
  if (asn !== undefined) found.push(...(asns.get(String(asn)) ?? []))
  if (country !== undefined) found.push(...(countries.get(country) ?? []))
  return found
}
