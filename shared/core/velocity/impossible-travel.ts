/**
 * Whether a user was in two places sooner than anybody travels: two events of different devices or
 * sessions, more than 500 km apart at more than 1,000 km/h. An airliner is slower, and the places
 * of addresses are right to some 100 km. It is silent where an address tells no place; see
 * `toPlace`.
 */
import { travelSightingsMax } from '#shared/core/base/limits/history.ts'
import {
  type Place,
  type PlaceBits,
  toLeastKilometres,
  toPlace,
} from '#shared/core/network/place.ts'
import type { NumberedMoment } from './new-device.ts'
import type { Moment } from './windowed-counts.ts'

const travelKilometres = 500
const travelKilometresPerHour = 1_000

/** Half around the globe, 20,015 km, takes 20 hours at that speed: a longer window finds no more. */
export const travelWindowMaxSeconds = 86_400

/** A sighting of the user. Ids are hashes; 0 is a placeholder. */
export type TravelSighting = Moment & {
  event: number
  userDevice: number
  session: number
  place: PlaceBits
}

type Seen = TravelSighting & { at: Place }

/** What an alert says of a journey. */
export type Journey = {
  from_country: string | null
  to_country: string | null
  /** At least so far. */
  distance_km: number
  hours: number
  speed_kmh: number
}

/**
 * Finds impossible journeys for many events of one user at once. Each event is compared with where
 * the sessions of before were last seen, as far as its window and `travelSightingsMax` reach.
 * @param rows in any order, repetitions allowed
 * @returns for each event its fastest impossible journey, or null, in the order of the events
 */
export function findImpossibleTravel(
  rows: readonly TravelSighting[],
  windowSeconds: number,
  events: readonly NumberedMoment[],
): (Journey | null)[] {
  const found = new Array<Journey | null>(events.length).fill(null)
  const indexesOf = new Map<string, number[]>()
  events.forEach((event, index) => {
    const name = `${event.streamOffset} ${event.event}`
    indexesOf.set(name, [...(indexesOf.get(name) ?? []), index])
  })
  const coming = [...rows].sort((a, b) => a.streamOffset - b.streamOffset || a.event - b.event)
  const recent = new Map<string, Seen>()
  let before = ''
  for (const row of coming) {
    const name = `${row.streamOffset} ${row.event}`
    if (name === before) continue
    before = name
    const at = toPlace(row.place)
    if (at === null) continue
    const seen = { ...row, at }
    const indexes = indexesOf.get(name)
    if (indexes !== undefined) {
      const journey = findFastest(recent.values(), seen, row.atMs - windowSeconds * 1_000)
      for (const index of indexes) found[index] = journey
    }
    const key = `${row.userDevice} ${row.session} ${row.place.join(' ')}`
    recent.delete(key)
    recent.set(key, seen)
    if (recent.size > travelSightingsMax) recent.delete(recent.keys().next().value!)
  }
  return found
}

/** Of equally fast journeys the one from the latest sighting. */
function findFastest(recent: Iterable<Seen>, to: Seen, afterMs: number): Journey | null {
  let fastest: Journey | null = null
  let speed = 0
  for (const from of recent) {
    if (from.atMs <= afterMs || isOneClient(from, to)) continue
    const distance = toLeastKilometres(from.at, to.at)
    if (distance <= travelKilometres) continue
    const hours = Math.max(1_000, Math.abs(to.atMs - from.atMs)) / 3_600_000
    const kilometresPerHour = distance / hours
    if (kilometresPerHour <= travelKilometresPerHour || kilometresPerHour < speed) continue
    speed = kilometresPerHour
    fastest = {
      from_country: from.at.country,
      to_country: to.at.country,
      distance_km: Math.round(distance),
      hours: Math.round(hours * 100) / 100,
      speed_kmh: Math.round(speed),
    }
  }
  return fastest
}

/**
 * Whether a journey of the two says nothing: of one session on one device, or of one device in a
 * mobile network, which takes a guest's traffic home before it meets the internet.
 */
function isOneClient(a: Seen, b: Seen): boolean {
  const isOther = (one: number, other: number) => one !== 0 && other !== 0 && one !== other
  if (isOther(a.userDevice, b.userDevice)) return false
  return !isOther(a.session, b.session) || a.at.isMobile || b.at.isMobile
}
