/**
 * Honest users of every kind that moves or seems to move, for a month each, and accounts that were
 * taken over: where their events come from, as network data sees it. The same seed gives the same.
 */
import { type Coordinates, toKilometres } from '#shared/core/network/distance.ts'
import type { TravelSighting } from '#shared/core/velocity/impossible-travel.ts'
import { type PlaceFacts, toPlaceBits } from './place-bits.ts'

/** What network data knows. */
export type NetworkKnowledge = { cities: boolean; kinds: boolean }

type City = Coordinates & { country: string }
type Sighting = { atMs: number; device: number; place: PlaceFacts }
type Random = () => number

const city = (country: string, latitude: number, longitude: number): City => {
  return { country, latitude, longitude }
}
const cities: readonly City[] = [
  city('DE', 52.52, 13.41),
  city('DE', 48.14, 11.58),
  city('GB', 51.51, -0.13),
  city('FR', 48.86, 2.35),
  city('ES', 40.42, -3.7),
  city('SE', 59.33, 18.07),
  city('RU', 59.94, 30.31),
  city('TR', 41.01, 28.98),
  city('AE', 25.2, 55.27),
  city('IN', 28.61, 77.21),
  city('IN', 12.97, 77.59),
  city('SG', 1.35, 103.82),
  city('VN', 21.03, 105.85),
  city('VN', 10.82, 106.63),
  city('JP', 35.68, 139.69),
  city('AU', -33.87, 151.21),
  city('AU', -31.95, 115.86),
  city('ZA', -26.2, 28.05),
  city('BR', -23.55, -46.63),
  city('US', 40.71, -74.01),
  city('US', 37.77, -122.42),
  city('US', 25.76, -80.19),
  city('CA', 43.65, -79.38),
]

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const days = 30

/** How far the coordinates of an address are off. */
const errorKilometres = 50
const near = ({ country, latitude, longitude }: City, random: Random): PlaceFacts => {
  const off = () => ((random() - 0.5) * errorKilometres) / 111.2
  const east = off() / Math.cos((latitude * Math.PI) / 180)
  return {
    country,
    coordinates: { latitude: latitude + off(), longitude: longitude + east },
  }
}
const withKinds = (place: PlaceFacts, ...kinds: string[]): PlaceFacts => ({ ...place, kinds })

const pick = <T>(values: readonly T[], random: Random): T =>
  values[Math.floor(random() * values.length)]!
const pickOther = (home: City, random: Random): City =>
  pick(
    cities.filter((one) => toKilometres(one, home) > 600),
    random,
  )
const pickAtHome = (home: City, random: Random): City =>
  pick(
    cities.filter((one) => one.country === home.country),
    random,
  )

/** Times of about six events a day. */
function* times(random: Random, fromMs = 0, toMs = days * dayMs): Generator<number> {
  for (let atMs = fromMs; ; ) {
    atMs += random() * 8 * hourMs
    if (atMs >= toMs) return
    yield atMs
  }
}

/** Events at home, on Wi-Fi. */
const atHome = (home: City, random: Random): Sighting[] =>
  [...times(random)].map((atMs) => ({ atMs, device: 1, place: near(home, random) }))

/** At home, and at each event also elsewhere some minutes later. */
function alternating(
  random: Random,
  home: City,
  elsewhere: () => PlaceFacts,
  device: number,
): Sighting[] {
  return atHome(home, random).flatMap((one) => {
    if (random() < 0.7) return [one]
    return [one, { atMs: one.atMs + random() * hourMs, device, place: elsewhere() }]
  })
}

/** Flights at 900 km/h with an event at either gate. Ground and errors of addresses are optional. */
function flying(random: Random, home: City, { isExact }: { isExact: boolean }): Sighting[] {
  const sightings: Sighting[] = []
  let here = home
  const placeOf = (at: City): PlaceFacts =>
    isExact ? { country: at.country, coordinates: at } : near(at, random)
  for (let atMs = 0; atMs < days * dayMs; ) {
    const leavesMs = atMs + (1 + 4 * random()) * dayMs
    for (const seenMs of times(random, atMs, leavesMs)) {
      sightings.push({ atMs: seenMs, device: random() < 0.7 ? 1 : 2, place: placeOf(here) })
    }
    sightings.push({ atMs: leavesMs, device: 1, place: placeOf(here) })
    const there = pickOther(here, random)
    const groundMs = isExact ? 0 : (0.5 + random()) * hourMs
    atMs = leavesMs + (toKilometres(here, there) / 900) * hourMs + groundMs
    here = there
    sightings.push({ atMs, device: 2, place: placeOf(here) })
  }
  return sightings
}

type Group = (random: Random, home: City) => Sighting[]

export const travellerGroups = {
  'at home on Wi-Fi': (random, home) => atHome(home, random),
  'at home, on Wi-Fi and in a mobile network that surfaces in any city of the country': (
    random,
    home,
  ) =>
    alternating(random, home, () => withKinds(near(pickAtHome(home, random), random), 'mobile'), 1),
  'flying at 900 km/h, from gate to gate': (random, home) =>
    flying(random, home, { isExact: true }),
  'flying, with time on the ground and errors of addresses': (random, home) =>
    flying(random, home, { isExact: false }),
  'using a VPN now and then': (random, home) =>
    alternating(random, home, () => withKinds(near(pick(cities, random), random), 'vpn'), 1),
  'using a relay now and then': (random, home) =>
    alternating(random, home, () => withKinds(near(pick(cities, random), random), 'relay'), 1),
  'abroad on hotel Wi-Fi, with the same phone roaming': (random, home) => {
    const hotel = pickOther(home, random)
    const roaming = () => withKinds(near(home, random), 'mobile')
    return alternating(random, hotel, roaming, 1)
  },
  'abroad with a tablet on hotel Wi-Fi and a phone roaming': (random, home) => {
    const hotel = pickOther(home, random)
    const roaming = () => withKinds(near(home, random), 'mobile')
    return alternating(random, hotel, roaming, 2)
  },
  'sharing an account with family in another city': (random, home) => {
    const other = pickOther(home, random)
    return alternating(random, home, () => near(other, random), 2)
  },
  'account taken over, from a household elsewhere': (random, home) => {
    const other = pickOther(home, random)
    const atMs = (1 + 20 * random()) * dayMs
    const stolen = [...times(random, atMs, atMs + dayMs)]
    return [
      ...atHome(home, random),
      ...stolen.map((seenMs) => ({ atMs: seenMs, device: 9, place: near(other, random) })),
    ]
  },
} as const satisfies Record<string, Group>

export type TravellerGroup = keyof typeof travellerGroups

/** Groups in which an alarm is a fault of the rule; the others are in two places at once. */
export const silentGroups: readonly TravellerGroup[] = [
  'at home on Wi-Fi',
  'at home, on Wi-Fi and in a mobile network that surfaces in any city of the country',
  'flying at 900 km/h, from gate to gate',
  'flying, with time on the ground and errors of addresses',
  'using a VPN now and then',
  'using a relay now and then',
  'abroad on hotel Wi-Fi, with the same phone roaming',
]

/** The sightings of one user, each of a session of its own, in the order of their times. */
export function liveMonth(
  group: TravellerGroup,
  user: number,
  { cities: knowsCities, kinds: knowsKinds }: NetworkKnowledge,
): TravelSighting[] {
  const random = createRandom(user + 1)
  const home = pick(cities, random)
  const sightings = travellerGroups[group](random, home)
  return sightings
    .sort((a, b) => a.atMs - b.atMs)
    .map(({ atMs, device, place }, index) => ({
      streamOffset: index + 1,
      event: index + 1,
      atMs: Math.round(atMs),
      userDevice: device,
      session: index + 1,
      place: toPlaceBits({
        country: place.country,
        coordinates: knowsCities ? place.coordinates : null,
        kinds: knowsKinds ? (place.kinds ?? []) : [],
      }),
    }))
}

/** Numbers from 0 to 1; mulberry32. */
function createRandom(seed: number): Random {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
