/** What an entry of an allow or deny list is: its list, its kind, and as an edge has it. */
import type { AddressWords } from '#shared/core/network/address.ts'

export const listNames = ['allow', 'deny'] as const
export type ListName = (typeof listNames)[number]

/** What an event says of itself, and what the service sees of where it came from. */
export const idKinds = ['device', 'user'] as const
export type IdKind = (typeof idKinds)[number]
export const connectionKinds = ['network', 'asn', 'country'] as const
export type ConnectionKind = (typeof connectionKinds)[number]

export const listKinds = [...idKinds, ...connectionKinds] as const
export type ListKind = (typeof listKinds)[number]

export const isConnectionKind = (kind: string): kind is ConnectionKind =>
  (connectionKinds as readonly string[]).includes(kind)

/** An entry as an edge has it: without the id, which it knows as a hash. */
export type ListEntry = {
  entryId: string
  list: ListName
  kind: ListKind
  /** A code such as `chargeback`. */
  reason: string
  /** In ms since 1970; null never expires. */
  expiresAtMs: number | null
}

/** What lists can know of where an event came from. */
export type ListedConnection = {
  /** The full address. */
  words: AddressWords
  /** ISO 3166-1 alpha-2. */
  country?: string | undefined
  /** The number of the network's operator. */
  asn?: number | undefined
}
