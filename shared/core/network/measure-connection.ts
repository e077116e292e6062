/** What an event says of the address that it came from: the member of its head, and its signals. */
import { createHmac, type KeyObject } from 'node:crypto'
import type { ListedConnection } from '../lists/list-entry.ts'
import type { CategorySignals } from '../signals/signal-definition.ts'
import { formatAddress, parseAddress, toStoredNetwork } from './address.ts'
import {
  findConnection,
  type NetworkSources,
  toConnectionSignals,
  toKindNames,
} from './connection.ts'
import type { EventConnection } from './event-connection.ts'

export type MeasuredConnection = {
  head: EventConnection
  /** What lists of networks, operators and countries match. */
  listed: ListedConnection
  /** Of category `connection`; empty where no source says anything of any address. */
  signals: CategorySignals
}

export type MeasureOptions = {
  /** The tenant's own. */
  addressKey: KeyObject
  /** Whether the full address is kept. */
  isStored: boolean
}

/**
 * @param text the address
 * @returns null where nothing is measured: it is no address, or none of the internet
 */
export function measureConnection(
  sources: NetworkSources,
  text: string,
  { addressKey, isStored }: MeasureOptions,
): MeasuredConnection | null {
  const words = parseAddress(text)
  const found = words === null ? null : findConnection(sources, words)
  if (words === null || found === null) return null
  const address = formatAddress(words)
  const head: EventConnection = {
    network: toStoredNetwork(words),
    address_hash: hashAddress(address, addressKey),
  }
  if (isStored) head.address = address
  if (found.country !== null) head.country = found.country
  if (found.asn !== null) head.asn = found.asn
  if (found.organization !== null) head.organization = found.organization
  if (found.latitude !== null && found.longitude !== null) {
    head.latitude = found.latitude
    head.longitude = found.longitude
  }
  if (found.kinds !== 0) head.kinds = toKindNames(found.kinds)
  const listed = { words, country: head.country, asn: head.asn }
  return { head, listed, signals: toConnectionSignals(sources, found) }
}

const hashCharacters = 22

/**
 * The keyed hash of an address.
 * @param address in its one spelling, as `formatAddress` writes it
 */
const hashAddress = (address: string, key: KeyObject): string =>
  createHmac('sha256', key).update(address).digest('base64url').slice(0, hashCharacters)
