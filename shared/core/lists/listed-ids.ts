/**
 * What an entry of a list can be for, in its one spelling. An id of a device or a user is the
 * client's own text. A network, an operator or a country has many spellings, of which one is kept,
 * and an entry that would reach further than meant is refused with the reason.
 */
import { widestListed } from '#shared/core/base/limits/lists.ts'
import {
  formatNetwork,
  isNoNarrowerThanStored,
  type Network,
  parseNetwork,
  parsePrefix,
  toNetwork,
} from '#shared/core/network/address.ts'
import { type AddressClass, classOfNetwork } from '#shared/core/network/address-class.ts'
import { isCountryCode } from '#shared/core/network/countries.ts'
import { isTooWide } from '#shared/core/network/network-list.ts'
import { isPlaceholderId } from '#shared/core/telemetry/placeholder-ids.ts'
import { type ConnectionKind, isConnectionKind, type ListKind } from './list-entry.ts'

/** An id in its one spelling, or what is wrong with it, as the rest of a sentence. */
export type ListedId = { id: string } | { fault: string }

/** Reads what an entry is for, as a person or a program writes it. */
export function parseListedId(kind: ListKind, text: string): ListedId {
  if (isConnectionKind(kind)) return parsers[kind](text.trim())
  if (isPlaceholderId(text)) return { fault: 'is a placeholder that many devices or users share' }
  return { id: text }
}

const parsers: Record<ConnectionKind, (text: string) => ListedId> = {
  network: parseListedNetwork,
  asn: parseAsn,
  country: parseCountry,
}

function parseListedNetwork(text: string): ListedId {
  const found = parsePrefix(text)
  if (found === null) {
    return { fault: 'must be a network in CIDR notation, such as 8.8.8.0/24, or an address' }
  }
  const network = toNetwork(found)
  const name = formatNetwork(network)
  if (isTooWide(network)) return { fault: toWideFault(network) }
  // The prefix may be the mistake: another one names more addresses, or fewer.
  if (network.words.some((word, at) => word !== found.words[at])) {
    return { fault: `has bits behind its prefix; the network with this prefix is ${name}` }
  }
  const addressClass = classOfNetwork(network)
  return addressClass === 'global' ? { id: name } : { fault: classFaults[addressClass] }
}

function toWideFault({ words }: Network): string {
  const [version, widest] =
    words.length === 1 ? (['IPv4', widestListed.v4] as const) : (['IPv6', widestListed.v6] as const)
  return `is too wide: the widest network of ${version} that can be listed is a /${widest}`
}

const unmeasured = 'from which no connection is measured'
const classFaults: Record<Exclude<AddressClass, 'global'>, string> = {
  loopback: `is in a loopback network, ${unmeasured}`,
  private: `is in a private network, ${unmeasured}`,
  link_local: `is in a link-local network, ${unmeasured}`,
  unique_local: `is in a private network, ${unmeasured}`,
  documentation: `is in a network for documentation, ${unmeasured}`,
  cgnat: `is in the shared network of carriers, ${unmeasured}`,
  tunnel: `is in a network of tunnels, ${unmeasured}`,
  multicast: `is in a multicast network, ${unmeasured}`,
  reserved: `is in a reserved network, ${unmeasured}`,
}

function parseAsn(text: string): ListedId {
  const digits = /^(?:AS)?(\d{1,10})$/i.exec(text)?.[1]
  const asn = Number(digits)
  return asn >= 1 && asn < 2 ** 32
    ? { id: String(asn) }
    : { fault: 'must be the number of an operator, from 1 to 4294967295, such as 64500 or AS64500' }
}

function parseCountry(text: string): ListedId {
  const code = text.toUpperCase()
  return isCountryCode(code)
    ? { id: code }
    : { fault: 'must be the code of a country, ISO 3166-1 alpha-2, such as DE' }
}

/**
 * Whether an id may stay where nothing is ever erased. A device, a user and a network that is
 * narrower than what the service stores of an address can stand for one person.
 */
export function isImpersonal(kind: ListKind, id: string): boolean {
  if (kind === 'network') {
    const network = parseNetwork(id)
    return network !== null && isNoNarrowerThanStored(network)
  }
  return isConnectionKind(kind)
}
