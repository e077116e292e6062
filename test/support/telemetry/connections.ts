// Connections of events for tests, and what is shown of them.
import { BlockList, isIPv6 } from 'node:net'
import fc from 'fast-check'
import type { Connection } from '#shared/core/network/connection-answer.ts'
import type { ConnectionColumns } from '#shared/core/network/connection-columns.ts'
import type { EventConnection } from '#shared/core/network/event-connection.ts'

/** In a documentation network, whose operator has a documentation number. */
export const hostingConnection = {
  network: '203.0.113.0/24',
  address_hash: 'AAAAAAAAAAAAAAAAAAAAAA',
  address: '203.0.113.77',
  country: 'DE',
  asn: 64_500,
  organization: 'Example Hosting Ltd',
  latitude: 52.5,
  longitude: 13.5,
  kinds: ['vpn', 'hosting'],
} satisfies EventConnection

/** Of a database that knows the country alone. */
export const plainConnection = {
  network: '2001:db8:7::/48',
  address_hash: 'BBBBBBBBBBBBBBBBBBBBBB',
  country: 'GB',
} satisfies EventConnection

/** Of which no database knows anything. */
export const unknownConnection = {
  network: '198.51.100.0/24',
  address_hash: 'CCCCCCCCCCCCCCCCCCCCCC',
} satisfies EventConnection

export const anyConnection: fc.Arbitrary<EventConnection> = fc.constantFrom(
  hostingConnection,
  plainConnection,
  unknownConnection,
  { ...hostingConnection, network: '203.0.114.0/24', kinds: [] },
)

/** What the API shows of it. */
export const toShown = (connection: EventConnection | undefined): Connection | null =>
  connection === undefined
    ? null
    : {
        country: connection.country ?? null,
        asn: connection.asn ?? null,
        organization: connection.organization ?? null,
        network: connection.network,
        kinds: connection.kinds ?? [],
      }

type Received = { received_at: number; connection?: EventConnection | undefined }

/** The one of the latest event that has one; of events of one instant, the greatest. */
export function findLatestShown(events: readonly Received[]): Connection | null {
  const measured = events.filter(({ connection }) => connection !== undefined)
  const latestMs = Math.max(...measured.map((event) => event.received_at))
  const [latest] = measured
    .filter((event) => event.received_at === latestMs)
    .sort((a, b) => (a.connection!.network < b.connection!.network ? 1 : -1))
  return toShown(latest?.connection)
}

/** As the stores keep it of an alert. */
export const toColumns = (connection: EventConnection): ConnectionColumns => ({
  connection_network: connection.network,
  connection_country: connection.country ?? null,
  connection_asn: connection.asn ?? null,
  connection_organization: connection.organization ?? null,
  connection_kinds: connection.kinds ?? [],
})

/** Whether a network in CIDR notation is another one, or contains it. */
export function isWithin(network: string, wider: string): boolean {
  const [[address, length], [first, bits]] = [network.split('/'), wider.split('/')]
  if (isIPv6(address!) !== isIPv6(first!) || Number(length) < Number(bits)) return false
  const family = isIPv6(first!) ? 'ipv6' : 'ipv4'
  const list = new BlockList()
  list.addSubnet(first!, Number(bits), family)
  return list.check(address!, family)
}
