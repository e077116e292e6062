/**
 * The connection of a stored event, as `telemetry` has it: without the full address and the
 * coordinates, which no decision and no answer reads.
 */
import type { EventConnection } from '#shared/core/network/event-connection.ts'

/** SQL: the columns of a `StoredConnection`, of `telemetry`, in its order. */
export const connectionColumns = `connection_network, connection_address_hash, connection_country,
  connection_asn, connection_organization, connection_kinds`

/** Texts are empty, and the number is 0, where nothing is known. */
export type StoredConnection = [
  network: string,
  addressHash: string,
  country: string,
  asn: number,
  organization: string,
  kinds: string[],
]

/** @returns the member of the event's head; undefined where nothing was measured */
export function toEventConnection([
  network,
  addressHash,
  country,
  asn,
  organization,
  kinds,
]: StoredConnection): EventConnection | undefined {
  if (network === '') return undefined
  return {
    network,
    address_hash: addressHash,
    ...(country === '' ? {} : { country }),
    ...(asn === 0 ? {} : { asn }),
    ...(organization === '' ? {} : { organization }),
    ...(kinds.length === 0 ? {} : { kinds }),
  }
}
