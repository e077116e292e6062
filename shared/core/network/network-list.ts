/**
 * Lists of networks: one a line, in CIDR notation or as an address, with comments behind `#`. A
 * list is used whole or not at all, so a line that is no network refuses it.
 */
import { listNetworksMax, widestListed } from '../base/limits/lists.ts'
import { type Network, parseNetwork } from './address.ts'
import { createNetworkCollector, type RangeTable } from './range-table.ts'

/** What a list or a database can say of a network. */
export const networkKinds = ['tor', 'vpn', 'hosting', 'proxy', 'relay', 'mobile'] as const
export type NetworkKind = (typeof networkKinds)[number]

/** Why a list is not used. */
export type ListFault =
  | { fault: 'not_a_network'; line: number }
  | { fault: 'too_wide'; line: number }
  | { fault: 'too_many_networks'; line: number }
  | { fault: 'empty' }

/** A list; an address has the length of the longest network that contains it, plus one. */
export type NetworkList = { table: RangeTable; networks: number }

/** Whether a network is one that no list may have, such as 0.0.0.0/0. */
export const isTooWide = ({ words, length }: Network): boolean =>
  length < (words.length === 1 ? widestListed.v4 : widestListed.v6)

/** Reads a list. An empty one is refused: it is what a failed download leaves. */
export function parseNetworkList(text: string, most = listNetworksMax): NetworkList | ListFault {
  const collector = createNetworkCollector()
  let line = 0
  for (let from = 0; from < text.length; ) {
    line++
    const newline = text.indexOf('\n', from)
    const end = newline === -1 ? text.length : newline
    const entry = toEntry(text.slice(from, end))
    from = end + 1
    if (entry === '') continue
    const network = parseNetwork(entry)
    if (network === null) return { fault: 'not_a_network', line }
    if (isTooWide(network)) return { fault: 'too_wide', line }
    if (collector.size() === most) return { fault: 'too_many_networks', line }
    collector.add(network, network.length + 1)
  }
  const networks = collector.size()
  return networks === 0 ? { fault: 'empty' } : { table: collector.finish(), networks }
}

function toEntry(line: string): string {
  const comment = line.indexOf('#')
  return (comment === -1 ? line : line.slice(0, comment)).trim()
}
