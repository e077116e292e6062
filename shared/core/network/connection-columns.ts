/** A connection as the stores keep it, and what is shown of it. */
import type { Connection } from './connection-answer.ts'

/** Where nothing was measured the stores have null, an empty text or 0. */
export type ConnectionColumns = {
  connection_network: string | null
  connection_country: string | null
  connection_asn: number | null
  connection_organization: string | null
  connection_kinds: string[] | null
}

/** @returns null where nothing was measured */
export function toConnection(columns: ConnectionColumns): Connection | null {
  const { connection_network: network, connection_kinds: kinds } = columns
  if (!network) return null
  return {
    country: columns.connection_country || null,
    asn: columns.connection_asn || null,
    organization: columns.connection_organization || null,
    network,
    kinds: kinds ?? [],
  }
}
