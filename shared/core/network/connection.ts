/**
 * What is known of an address: a pure function of the databases and lists that are loaded. Where an
 * address is not of the internet nothing was measured, and nothing is said.
 */
import type { CategorySignals } from '../signals/signal-definition.ts'
import type { AddressWords } from './address.ts'
import { classOf } from './address-class.ts'
import { countryOf, type FactColumns, organizationOf } from './network-facts.ts'
import { type NetworkKind, networkKinds } from './network-list.ts'
import { findValue, type RangeTable } from './range-table.ts'

export type NetworkDatabase = { table: RangeTable; facts: FactColumns }
export type KindList = { kind: NetworkKind; table: RangeTable }

/** Everything that addresses are looked up in. */
export type NetworkSources = {
  /** Of two databases that know a country, the first one counts. */
  databases: readonly NetworkDatabase[]
  lists: readonly KindList[]
  /** Kinds that a list or a database can tell, as bits: of these, an absent one means no. */
  measuredKinds: number
  /** Whether documentation addresses are looked up like those of the internet. */
  measuresDocumentation?: boolean
}

/** What is known of a measured address. */
export type ConnectionFacts = {
  country: string | null
  asn: number | null
  /** The name of the network's operator. */
  organization: string | null
  /** Degrees; null for none, both or neither. */
  latitude: number | null
  longitude: number | null
  /** Bits of `networkKinds`. */
  kinds: number
}

/** Kinds as the bits of all sources. */
export function toMeasuredKinds(
  databases: readonly NetworkDatabase[],
  lists: readonly KindList[],
): number {
  const ofLists = lists.reduce((bits, { kind }) => bits | bitOf(kind), 0)
  return databases.reduce((bits, { facts }) => bits | facts.heldKinds, ofLists)
}

/** @returns null for an address of which nothing is measured */
export function findConnection(
  sources: NetworkSources,
  words: AddressWords,
): ConnectionFacts | null {
  if (!isMeasured(sources, words)) return null
  const found: ConnectionFacts = {
    country: null,
    asn: null,
    organization: null,
    latitude: null,
    longitude: null,
    kinds: 0,
  }
  for (const { table, facts } of sources.databases) {
    const fact = findValue(table, words)
    if (fact !== 0) addFacts(found, facts, fact)
  }
  const listed = findListed(sources.lists, words)
  if (listed !== 0) found.kinds = listed
  return found
}

function isMeasured({ measuresDocumentation }: NetworkSources, words: AddressWords): boolean {
  const name = classOf(words)
  return name === 'global' || (name === 'documentation' && measuresDocumentation === true)
}

function addFacts(found: ConnectionFacts, facts: FactColumns, fact: number): void {
  found.country ??= countryOf(facts, fact)
  if (found.asn === null && facts.asns[fact] !== 0) found.asn = facts.asns[fact]!
  found.organization ??= organizationOf(facts, fact)
  const latitude = facts.latitudes[fact]!
  if (found.latitude === null && !Number.isNaN(latitude)) {
    found.latitude = latitude
    found.longitude = facts.longitudes[fact]!
  }
  found.kinds |= facts.kinds[fact]!
}

/** The kinds of the lists with the longest network that contains the address; 0 for none. */
function findListed(lists: readonly KindList[], words: AddressWords): number {
  let longest = 0
  let kinds = 0
  for (const { kind, table } of lists) {
    const length = findValue(table, words)
    if (length === 0 || length < longest) continue
    kinds = length === longest ? kinds | bitOf(kind) : bitOf(kind)
    longest = length
  }
  return kinds
}

/** The names of kinds, in their order. */
export const toKindNames = (kinds: number): NetworkKind[] =>
  networkKinds.filter((kind) => (kinds & bitOf(kind)) !== 0)

const bitOf = (kind: NetworkKind): number => 1 << networkKinds.indexOf(kind)

/** Kinds that are signals. A phone in a mobile network is the usual case and says nothing. */
const signalKinds = ['hosting', 'vpn', 'tor', 'proxy', 'relay'] as const
const signalBits = signalKinds.map((kind) => [kind, bitOf(kind)] as const)

/** The signals of category `connection`. A kind is false only where a source could have said true. */
export function toConnectionSignals(
  sources: NetworkSources,
  found: ConnectionFacts,
): CategorySignals {
  const signals: CategorySignals = {}
  if (found.country !== null) signals.country = found.country
  if (found.asn !== null) signals.asn = `AS${found.asn}`
  for (const [kind, bit] of signalBits) {
    if ((sources.measuredKinds & bit) !== 0) signals[kind] = (found.kinds & bit) !== 0
  }
  return signals
}
