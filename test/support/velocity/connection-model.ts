// Connections of events, and what a plain model counts of them.
import type { EventConnection } from '#shared/core/network/event-connection.ts'
import { toLeastKilometres } from '#shared/core/network/place.ts'
import type { VelocityMetric } from '#shared/core/policies/policy.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'

type Facts = Partial<Omit<EventConnection, 'network'>>

/** Where events of tests come from: with cities, without, and behind what hides a place. */
export const connectionFacts: readonly Facts[] = [
  { country: 'DE', latitude: 52.52, longitude: 13.41 },
  { country: 'DE', latitude: 53.55, longitude: 9.99, kinds: ['mobile'] },
  { country: 'US', latitude: 40.71, longitude: -74.01 },
  { country: 'JP', latitude: 35.68, longitude: 139.69 },
  { country: 'NZ', latitude: -41.29, longitude: 174.78, kinds: ['mobile'] },
  { country: 'BR' },
  { country: 'AT' },
  { country: 'SE' },
  { country: 'US', latitude: 37.77, longitude: -122.42, kinds: ['hosting'] },
  { country: 'NL', latitude: 52.37, longitude: 4.9, kinds: ['mobile', 'vpn'] },
  { country: 'ZA', kinds: ['relay'] },
  {},
]

/** A connection from one of so many networks. */
export function makeConnection(facts: Facts, network: number): EventConnection {
  return { network: `93.184.${network}.0/24`, address_hash: 'a'.repeat(22), ...facts }
}

const usersOf = ({ body }: AcceptedEvent): string[] =>
  [body.user_id, body.account_id].filter((id) => id !== undefined)

const unique = (values: readonly (string | undefined)[]) =>
  new Set(values.filter((value) => value !== undefined)).size

/** Counts at an event, over those of the window up to it; null for other metrics. */
export function countConnections(
  before: readonly AcceptedEvent[],
  at: AcceptedEvent,
  metric: VelocityMetric,
): number | null {
  const onDevice = before.filter(({ body }) => body.device_id === at.body.device_id)
  const inNetwork = before.filter(({ connection }) => {
    return connection !== undefined && connection.network === at.connection?.network
  })
  const ofUsers = usersOf(at).map((id) => before.filter((event) => usersOf(event).includes(id)))
  switch (metric) {
    case 'countries_per_user':
      return Math.max(
        0,
        ...ofUsers.map((own) => unique(own.map(({ connection }) => connection?.country))),
      )
    case 'countries_per_device':
      return unique(onDevice.map(({ connection }) => connection?.country))
    case 'networks_per_device':
      return unique(onDevice.map(({ connection }) => connection?.network))
    case 'devices_per_network':
      return unique(inNetwork.map(({ body }) => body.device_id))
    case 'users_per_network':
      return unique(inNetwork.flatMap(usersOf))
    case 'impossible_travel':
      return ofUsers.some((own) => isImpossible(own, at)) ? 1 : 0
    default:
      return null
  }
}

/** Whether a session of before, where it was last seen, is too far away. */
function isImpossible(own: readonly AcceptedEvent[], at: AcceptedEvent): boolean {
  const here = toKnownPlace(at)
  if (here === null) return false
  const earlier = own
    .filter(({ streamOffset }) => streamOffset < at.streamOffset)
    .sort((a, b) => a.streamOffset - b.streamOffset)
  const lastSeen = new Map(
    earlier.map((event) => {
      const { device_id: device, session_id: session } = event.body
      return [JSON.stringify([device, session, toKnownPlace(event)]), event] as const
    }),
  )
  return [...lastSeen.values()].some((event) => {
    const there = toKnownPlace(event)
    if (there === null) return false
    const isSameDevice = event.body.device_id === at.body.device_id
    const isSameSession = event.body.session_id === at.body.session_id
    if (isSameDevice && (isSameSession || here.isMobile || there.isMobile)) return false
    const distance = toLeastKilometres(there, here)
    const hours = Math.abs(at.received_at - event.received_at) / 3_600_000
    return distance > 500 && distance > 1_000 * hours
  })
}

const hiding = ['vpn', 'relay', 'tor', 'proxy', 'hosting']

function toKnownPlace({ connection }: AcceptedEvent) {
  const { country = null, latitude, longitude, kinds = [] } = connection ?? {}
  if (kinds.some((kind) => hiding.includes(kind))) return null
  if (country === null && latitude === undefined) return null
  const coordinates =
    latitude === undefined || longitude === undefined
      ? null
      : { latitude: toStored(latitude, 180), longitude: toStored(longitude, 360) }
  return { country, coordinates, isMobile: kinds.includes('mobile') }
}

/** Degrees as they are kept: in 65,534ths of their range, of a 32-bit number. */
const toStored = (degrees: number, range: number): number =>
  (Math.round(((Math.fround(degrees) + range / 2) * 65_534) / range) * range) / 65_534 - range / 2
